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

_all := object.keys(_entries)

test_author_known if {
	held := {name | some name, one in _entries; entry.author_known(one) with data.policy as _policy}
	_all - held == {"no author", "no role", "other role"}
	every one in _entries {
		not entry.author_known(one) with data.policy as {}
	}
}

test_kind_admitted if {
	held := {name | some name, one in _entries; entry.kind_admitted(one) with data.policy as _policy}
	_all - held == {"monologue", "unlisted", "no role", "other role", "no kind"}
	every one in _entries {
		not entry.kind_admitted(one) with data.policy as {}
	}
}

test_recipient_known if {
	held := {name | some name, one in _entries; entry.recipient_known(one) with data.policy as _policy}
	_all - held == {"unlisted", "hint for a stranger", "hint for no one", "no kind"}
	every one in _entries {
		not entry.recipient_known(one) with data.policy as {}
	}
}

test_small_enough if {
	held := {name | some name, one in _entries; entry.small_enough(one) with data.policy as _policy}
	_all - held == {"large", "no size"}
	every one in _entries {
		not entry.small_enough(one) with data.policy as {}
	}
}

test_checked if _all - {name | some name, one in _entries; entry.checked(one)} == {"unchecked"}

test_of_another_type if {
	every change in [{"poses": null}, {"poses": 0}, {"quotes": null}, {"quotes": {}}] { not entry.checked(_with(change)) }
	every wrong in [null, true, "", [], {}] {
		not entry.small_enough(_with({"bytes": wrong})) with data.policy as _policy
		not entry.small_enough(_one) with data.policy as {"episodes": {"entry_bytes": wrong}}
	}
	listed := {"episodes": {"roles": [{"entries": [0]}], "entries": ["all"]}}
	not entry.author_known(_with({"role": 0})) with data.policy as listed
	not entry.kind_admitted(_with({"role": 0, "kind": 0})) with data.policy as listed
}
