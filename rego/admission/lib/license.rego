# What a license label is worth: the one meaning that points `source` and `license` share.
#
# A label is a list of alternatives (OR), an alternative is a list of keys that all apply (AND): the
# best alternative counts, in it the worst key. A key is worth the stricter of its row, of its
# category for the purpose, and, when the result is exported, of its category's export term.
package admission.lib.license

import future.keywords.not

# What the material is wanted for, of a request that states a purpose and whether it exports. Small
# on purpose: it is an argument of every call below.
use(request) := {"purpose": request.purpose, "exported": false, "export": []} if {
	request.purpose in {"train", "eval", "tool", "environment"}
	request.exported == false
}

use(request) := {"purpose": request.purpose, "exported": true, "export": alternatives} if {
	request.purpose in {"train", "eval", "tool", "environment"}
	request.exported == true
	alternatives := request.export_license.alternatives
	known_everywhere(alternatives)
}

# Some alternative has a complete row for each of its keys.
known(alternatives) if {
	is_array(alternatives)
	some alternative in alternatives
	_all_known(alternative)
}

# Every alternative has: whoever receives the result may choose any of them.
known_everywhere(alternatives) if {
	is_array(alternatives)
	count(alternatives) > 0
	every alternative in alternatives { _all_known(alternative) }
}

# Some alternative of which every key is worth one of the verdicts for this use.
worth(alternatives, wanted, verdicts) if {
	is_array(alternatives)
	some alternative in alternatives
	is_array(alternative)
	count(alternative) > 0
	every key in alternative { _key_worth(key, wanted, verdicts) }
}

_all_known(alternative) if {
	is_array(alternative)
	count(alternative) > 0
	every key in alternative {
		row := data.policy.licenses.licenses[key]
		row.decision in {"admit", "review", "refuse"}
		is_object(data.policy.licenses.categories[row.category])
	}
}

_key_worth(key, wanted, verdicts) if {
	row := data.policy.licenses.licenses[key]
	row.decision in verdicts
	category := data.policy.licenses.categories[row.category]
	category[wanted.purpose] in verdicts
	_export_worth(row, category, wanted, verdicts)
}

_export_worth(_, _, wanted, _) if wanted.exported == false

_export_worth(_, category, wanted, verdicts) if {
	wanted.exported == true
	category.export in verdicts
}

# `listed`: each license of each alternative of the export license stands in the row.
_export_worth(row, category, wanted, _) if {
	wanted.exported == true
	category.export == "listed"
	count(wanted.export) > 0
	every alternative in wanted.export {
		count(alternative) > 0
		every key in alternative { key in row.export_under }
	}
}
