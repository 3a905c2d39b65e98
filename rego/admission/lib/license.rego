# Whether a license is admitted: one definition for the points `source` and `license`.
#
# A material has `license` and the recomputed `content.sha256`. Both its license decision and the table in
# policy/licenses.yaml count; the stricter wins.
#
# A label is a list of alternatives (OR); an alternative is a list of keys that all apply (AND). The best
# alternative counts, and in it the worst key. The verdict on a key is the strictest of its row, of
# its category for the purpose, and, when the result is exported, of its category's export term.
package admission.lib.license

import data.admission.lib.license_decision
import future.keywords.not

# The purpose and export of a request. Small on purpose, because it is an argument of every call below.
use(request) := {"purpose": request.purpose, "exported": false, "export": []} if {
	request.purpose in data.policy.sources.purposes
	request.exported == false
}

use(request) := {"purpose": request.purpose, "exported": true, "export": alternatives} if {
	request.purpose in data.policy.sources.purposes
	request.exported == true
	alternatives := request.export_license.alternatives
	all_known(alternatives)
}

known(material) if {
	any_known(material.license.alternatives)
	license_decision.every_decision_in(material, {"accepted", "incompatible", "review_required"})
}

compatible(material, use) if {
	best_verdict_in(material.license.alternatives, use, {"admit", "review"})
	license_decision.every_decision_in(material, {"accepted", "review_required"})
}

admitted(material, use) if {
	best_verdict_in(material.license.alternatives, use, {"admit"})
	license_decision.every_decision_in(material, {"accepted"})
}

# Some alternative has a complete row for each of its keys.
any_known(alternatives) if {
	is_array(alternatives)
	some alternative in alternatives
	_keys_known(alternative)
}

# Every alternative has complete rows: recipients of the result may choose any of them.
all_known(alternatives) if {
	is_array(alternatives)
	count(alternatives) > 0
	every alternative in alternatives { _keys_known(alternative) }
}

# In some alternative, the verdict on every key for this use is one of the given verdicts.
best_verdict_in(alternatives, use, verdicts) if {
	is_array(alternatives)
	some alternative in alternatives
	is_array(alternative)
	count(alternative) > 0
	every key in alternative { _verdict_in(key, use, verdicts) }
}

_keys_known(alternative) if {
	is_array(alternative)
	count(alternative) > 0
	every key in alternative {
		row := data.policy.licenses.licenses[key]
		row.decision in {"admit", "review", "refuse"}
		is_object(data.policy.licenses.categories[row.category])
	}
}

_verdict_in(key, use, verdicts) if {
	row := data.policy.licenses.licenses[key]
	row.decision in verdicts
	category := data.policy.licenses.categories[row.category]
	category[use.purpose] in verdicts
	_export_verdict_in(row, category, use, verdicts)
}

_export_verdict_in(_, _, use, _) if use.exported == false

_export_verdict_in(_, category, use, verdicts) if {
	use.exported == true
	category.export in verdicts
}

# `listed`: the row lists each license of each alternative of the export license.
_export_verdict_in(row, category, use, _) if {
	use.exported == true
	category.export == "listed"
	count(use.export) > 0
	every alternative in use.export {
		count(alternative) > 0
		every key in alternative { key in row.export_under }
	}
}
