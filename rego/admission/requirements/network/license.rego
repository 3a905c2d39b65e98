package admission.requirements.network.license

import future.keywords.not

# METADATA
# title: The caller states the license label of the content
# description: The license itself is decided on when the source bundle is checked.
# custom:
#   code: license_missing
#   remedy: State the license of the content, such as CC-BY-4.0, with `--license`
# labels:
#   row: A31
licensed if input.network.licensed == true
