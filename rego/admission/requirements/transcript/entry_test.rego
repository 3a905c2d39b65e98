package admission.requirements.transcript.entry_test

import data.admission.requirements.transcript.entry
import future.keywords.not

_policy := {"episodes": {
	"roles": {"Actor": {"entries": ["dialogue", "hint", "lost"]}},
	"entries": {"dialogue": "all", "monologue": "author", "hint": "recipient"},
	"entry_bytes": 10,
}}

_one := {
	"id": "0", "author": "a", "role": "Actor", "kind": "dialogue", "recipient_known": false, "poses": false,
	"bytes": 10, "quotes": [],
}

_with(change) := object.union(_one, change)

_hint := _with({"kind": "hint", "recipient": "b", "recipient_known": true})

_entries := {
	"dialogue": _one,
	"hint": _hint,
	"monologue": _with({"kind": "monologue"}),
	"unlisted": _with({"kind": "lost"}),
	"hint for a stranger": object.union(_hint, {"recipient_known": false}),
	"hint for no one": json.remove(_hint, ["recipient"]),
	"no author": json.remove(_one, ["author"]),
	"no role": json.remove(_one, ["role"]),
	"other role": _with({"role": "System"}),
	"no kind": json.remove(_one, ["kind"]),
	"large": _with({"bytes": 11}),
	"no size": json.remove(_one, ["bytes"]),
	"unchecked": json.remove(_one, ["poses", "quotes"]),
}

_held(rule, policy) := ((({name |
	some name, one in _entries
	rule == "author"
	entry.author_known(one) with data.policy as policy
} | {name |
	some name, one in _entries
	rule == "kind"
	entry.kind_admitted(one) with data.policy as policy
}) | {name |
	some name, one in _entries
	rule == "recipient"
	entry.recipient_known(one) with data.policy as policy
}) | {name |
	some name, one in _entries
	rule == "size"
	entry.small_enough(one) with data.policy as policy
}) | {name |
	some name, one in _entries
	rule == "checked"
	entry.checked(one) with data.policy as policy
}

_all := object.keys(_entries)

test_entries if {
	_all - _held("author", _policy) == {"no author", "no role", "other role"}
	_all - _held("kind", _policy) == {"monologue", "unlisted", "no role", "other role", "no kind"}
	_all - _held("recipient", _policy) == {"unlisted", "hint for a stranger", "hint for no one", "no kind"}
	_all - _held("size", _policy) == {"large", "no size"}
	_all - _held("checked", _policy) == {"unchecked"}
}

test_values_missing if {
	every rule in ["author", "kind", "recipient", "size"] {
		_held(rule, {}) == set()
	}
}
