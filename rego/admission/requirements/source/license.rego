package admission.requirements.source.license

import data.admission.lib.license
import future.keywords.not

# METADATA
# title: Every record carries a license label
# description: The label is an SPDX expression; a blank label counts as missing.
# custom:
#   code: license_missing
#   each: bundle.records
#   field: license
#   remedy: Determine the license of the material, and write its SPDX expression into the record
# labels:
#   row: A11
stated(record) if record.license.stated == true

# METADATA
# title: The license of every record is known
# description: At least one alternative has rows for all of its licenses, and the license decision has an outcome.
# custom:
#   code: license_unknown
#   each: bundle.records
#   after: [license_decision_ambiguous]
#   field: license
#   remedy: Write an SPDX expression (with AND or OR), or have the license or spelling added to policy/licenses.yaml
#   reads: ["licenses.licenses.{license.alternatives}"]
# labels:
#   row: A15
known(record) if license.known(record)

# METADATA
# title: The license of every record is compatible with its purpose and export
# description: Neither the license decision nor the table in policy/licenses.yaml refuses it. The stricter wins.
# custom:
#   code: license_incompatible
#   each: bundle.records
#   after: [license_unknown, purpose_not_admitted, export_license_unknown]
#   field: license
#   facts: {purpose: bundle.purpose}
#   remedy: Replace the record, change purpose or export license, or ask compliance about policy/licenses.yaml
#   reads:
#     - "licenses.licenses.{license.alternatives}"
#     - "licenses.categories.{licenses.licenses.{license.alternatives}.category}"
# labels:
#   row: A16
compatible(record) if license.compatible(record, _use)

# METADATA
# title: The license of every record is admitted without review
# description: Both the license decision and the table in policy/licenses.yaml accept it for this purpose and export.
# custom:
#   code: license_review_required
#   standing: confirm
#   each: bundle.records
#   after: [license_incompatible]
#   field: license
#   facts: {purpose: bundle.purpose}
#   remedy: Have a person approve this request with `engine approvals grant`, or correct the license decision
#   reads:
#     - "licenses.licenses.{license.alternatives}"
#     - "licenses.categories.{licenses.licenses.{license.alternatives}.category}"
# labels:
#   row: A17
admitted(record) if license.admitted(record, _use)

_use := license.use(input.bundle)
