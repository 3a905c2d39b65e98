package admission.requirements.license.use

import data.admission.lib.license
import future.keywords.not

# METADATA
# title: The purpose is admitted
# description: Purposes are values in policy/sources.yaml.
# custom:
#   code: purpose_not_admitted
#   remedy: State an admitted purpose, or ask compliance to admit this one in policy/sources.yaml
#   reads: [sources.purposes]
# labels:
#   row: A09
purpose_admitted if input.purpose in data.policy.sources.purposes

# METADATA
# title: The export license is known
# description: Null if the result will not be exported; otherwise policy/licenses.yaml has a row for every license in
#   the expression.
# custom:
#   code: export_license_unknown
#   remedy: Write export_license as an SPDX expression of licenses in policy/licenses.yaml, or null
#   reads: ["licenses.licenses.{export_license.alternatives}"]
# labels:
#   row: A14
export_license_known if input.exported == false

export_license_known if {
	input.exported == true
	license.all_known(input.export_license.alternatives)
}
