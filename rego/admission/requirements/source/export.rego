package admission.requirements.source.export

import data.admission.lib.license
import future.keywords.not

# METADATA
# title: Every record states whether it may be exported
# description: The answer is allowed or forbidden, whether or not the result of this source bundle will be exported.
# custom:
#   code: export_not_stated
#   each: bundle.records
#   field: export
#   remedy: Write `export` as allowed or forbidden into the record
# labels:
#   row: A14
stated(record) if record.export in {"allowed", "forbidden"}

# METADATA
# title: Every record may be exported if the result is exported
# description: One record that must not be exported blocks the export of the whole result.
# custom:
#   code: export_forbidden
#   each: bundle.records
#   after: [export_not_stated, export_license_unknown]
#   field: export
#   remedy: Write `allowed` into `export` of the record if its owner permits that, or remove the record, or set
#     export_license to null and use the result internally only
# labels:
#   row: A14
permitted(record) if {
	record.export == "allowed"
	is_boolean(input.bundle.exported)
}

permitted(record) if {
	record.export == "forbidden"
	input.bundle.exported == false
}

# METADATA
# title: The export license is known
# description: Null if the result will not be exported; otherwise policy/licenses.yaml has a row for every license in
#   the expression.
# custom:
#   code: export_license_unknown
#   after: [bundle_missing]
#   field: bundle.export_license
#   remedy: Write export_license as an SPDX expression of licenses in policy/licenses.yaml, or null
#   reads: ["licenses.licenses.{bundle.export_license.alternatives}"]
# labels:
#   row: A14
license_known if input.bundle.exported == false

license_known if {
	input.bundle.exported == true
	license.all_known(input.bundle.export_license.alternatives)
}
