package admission.requirements.source.license

import data.admission.lib.license
import data.admission.lib.license_decision
import future.keywords.not

# METADATA
# title: Every record carries a license label
# description: The label is an SPDX expression; a blank one is none.
# custom:
#   code: license_missing
#   each: bundle.records
#   remedy: Determine the license of the material, and write its SPDX expression into the record
# labels:
#   row: A11
stated(record) if record.license.stated == true

# METADATA
# title: The license of every record is known
# description: Neither the license decision nor the table in policy/licenses.yaml leaves it open.
# custom:
#   code: license_unknown
#   each: bundle.records
#   after: [license_missing, license_decision_missing]
#   remedy: Correct the SPDX expression, or have the license decided and added to policy/licenses.yaml
#   reads: ["licenses.licenses.{license.alternatives}"]
# labels:
#   row: A15
known(record) if {
	license.known(record.license.alternatives)
	license_decision.within(record, {"accepted", "incompatible", "review_required"})
}

# METADATA
# title: The license of every record is compatible with its purpose and export
# description: Neither the license decision nor the table in policy/licenses.yaml refuses it. The stricter wins.
# custom:
#   code: license_incompatible
#   each: bundle.records
#   after: [license_missing, license_unknown, purpose_not_admitted, export_license_unknown]
#   remedy: Replace the record, change purpose or export license, or ask compliance about policy/licenses.yaml
#   reads:
#     - "licenses.licenses.{license.alternatives}"
#     - "licenses.categories.{licenses.licenses.{license.alternatives}.category}"
# labels:
#   row: A16
compatible(record) if {
	license.worth(record.license.alternatives, _use, {"admit", "review"})
	license_decision.within(record, {"accepted", "review_required"})
}

# METADATA
# title: The license of every record is admitted without review
# description: Both the license decision and the table in policy/licenses.yaml accept it for this purpose and export.
# custom:
#   code: license_review_required
#   standing: confirm
#   each: bundle.records
#   after: [license_incompatible]
#   remedy: Have the license reviewed, and replace the license decision with one that accepts this content
#   reads:
#     - "licenses.licenses.{license.alternatives}"
#     - "licenses.categories.{licenses.licenses.{license.alternatives}.category}"
# labels:
#   row: A17
admitted(record) if {
	license.worth(record.license.alternatives, _use, {"admit"})
	license_decision.within(record, {"accepted"})
}

_use := license.use(input.bundle)
