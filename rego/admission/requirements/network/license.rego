package admission.requirements.network.license

import future.keywords.not

# METADATA
# title: The caller states the license label of content that is kept
# description: The license itself is decided on when the source bundle is checked. Nothing of a tunnel is kept.
# custom:
#   code: license_missing
#   remedy: State the license of the content, such as CC-BY-4.0, with `--license` or in `license`
# labels:
#   row: A31
licensed if input.network.licensed == true

licensed if input.network.purpose == "tunnel"
