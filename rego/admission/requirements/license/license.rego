package admission.requirements.license.license

import data.admission.lib.license
import future.keywords.not

# METADATA
# title: The content carries a license label
# description: The label is an SPDX expression; a blank label counts as missing.
# custom:
#   code: license_missing
#   remedy: Determine the license of the content, and state its SPDX expression
# labels:
#   row: A11
stated if input.license.stated == true

# METADATA
# title: The license is known
# description: At least one alternative has rows for all of its licenses, and the license decision has an outcome.
# custom:
#   code: license_unknown
#   field: license
#   after: [license_decision_ambiguous]
#   remedy: Write an SPDX expression (with AND or OR), or have the license or spelling added to policy/licenses.yaml
#   reads: ["licenses.licenses.{license.alternatives}"]
# labels:
#   row: A15
known if license.known(input)

# METADATA
# title: The license is compatible with purpose and export
# description: Neither the license decision nor the table in policy/licenses.yaml refuses it. The stricter wins.
# custom:
#   code: license_incompatible
#   after: [license_unknown, purpose_not_admitted, export_license_unknown]
#   remedy: Replace the content, change purpose or export license, or ask compliance about policy/licenses.yaml
#   reads:
#     - "licenses.licenses.{license.alternatives}"
#     - "licenses.categories.{licenses.licenses.{license.alternatives}.category}"
# labels:
#   row: A16
compatible if license.compatible(input, _use)

# METADATA
# title: The license is admitted without review
# description: Both the license decision and the table in policy/licenses.yaml accept it for this purpose and export.
# custom:
#   code: license_review_required
#   standing: confirm
#   after: [license_incompatible]
#   remedy: Have a person approve this request with `engine approvals grant`, or correct the license decision
#   reads:
#     - "licenses.licenses.{license.alternatives}"
#     - "licenses.categories.{licenses.licenses.{license.alternatives}.category}"
# labels:
#   row: A17
admitted if license.admitted(input, _use)

_use := license.use(input)
