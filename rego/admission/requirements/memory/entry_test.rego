package admission.requirements.memory.entry_test

import data.admission.requirements.memory.entry
import future.keywords.not

_policy := {
	"memory": {
		"origins": {"user": "trusted", "website": "untrusted"},
		"sensitivities": {"internal": {"private_data": "refused"}, "personal": {"private_data": "allowed"}},
		"entry_bytes": 10,
	},
	"results": {"markers": {"phrases": [], "tokens": []}},
}

_one := {
	"id": "0",
	"origin": {"kind": "user", "name": "s"},
	"sensitivity": "internal",
	"bytes": 10,
	"secrets": 0,
	"private": 0,
	"hidden": 0,
	"instructions": 0,
}

_with(change) := object.union(_one, change)

_entries := {
	"user": _one,
	"website": _with({"origin": {"kind": "website"}}),
	"other origin": _with({"origin": {"kind": "dream"}}),
	"no origin": json.remove(_one, ["origin"]),
	"unnamed origin": _with({"origin": {"name": ""}}),
	"other sensitivity": _with({"sensitivity": "cosmic"}),
	"no sensitivity": json.remove(_one, ["sensitivity"]),
	"secret": _with({"secrets": 1}),
	"not searched": json.remove(_one, ["secrets", "private", "hidden", "instructions"]),
	"hidden": _with({"hidden": 1}),
	"instructions": _with({"instructions": 1}),
	"private": _with({"private": 1}),
	"private and personal": _with({"private": 1, "sensitivity": "personal"}),
	"large": _with({"bytes": 11}),
	"no size": json.remove(_one, ["bytes"]),
}

_all := object.keys(_entries)

test_complete if {
	every request in [
		{"operation": "write", "written": [{}], "asked": []},
		{"operation": "forget", "written": [], "asked": [{}]},
		{"operation": "read", "written": [], "asked": [{}]},
		{"operation": "read", "written": [], "asked": []},
	] {
		entry.complete with input as request
	}
	every request in [
		{"operation": "write", "written": [], "asked": []},
		{"operation": "write", "written": [{}], "asked": [{}]},
		{"operation": "write", "written": [{}]},
		{"operation": "forget", "written": [], "asked": []},
		{"operation": "forget", "written": [{}], "asked": [{}]},
		{"operation": "read", "written": [{}], "asked": []},
		{"operation": "read", "asked": []},
		{"operation": "read", "written": [], "asked": [{}, {}]},
		{"operation": "list", "written": [], "asked": []},
		{"operation": "list", "written": [], "asked": [{}]},
		{"operation": "write", "written": {"x": {}}, "asked": []},
		{"operation": "write", "written": [{}], "asked": {}},
		{"operation": "forget", "written": {}, "asked": [{}]},
		{"operation": "forget", "written": [], "asked": {"x": {}}},
		{"operation": "read", "written": {}, "asked": []},
		{"operation": "read", "written": [], "asked": {}},
		{"written": [{}], "asked": []},
	] {
		not entry.complete with input as request
	}
}

test_origin_known if {
	held := {name | some name, one in _entries; entry.origin_known(one) with data.policy as _policy}
	_all - held == {"other origin", "no origin", "unnamed origin"}
	every one in _entries {
		not entry.origin_known(one) with data.policy as {}
	}
}

test_origin_trusted if {
	held := {name | some name, one in _entries; entry.origin_trusted(one) with data.policy as _policy}
	_all - held == {"website", "other origin", "no origin"}
	every one in _entries {
		not entry.origin_trusted(one) with data.policy as {}
	}
}

test_sensitivity_known if {
	held := {name | some name, one in _entries; entry.sensitivity_known(one) with data.policy as _policy}
	_all - held == {"other sensitivity", "no sensitivity"}
	every one in _entries {
		not entry.sensitivity_known(one) with data.policy as {}
	}
}

test_no_secret if _all - {name | some name, one in _entries; entry.no_secret(one)} == {"secret", "not searched"}

test_private_data_allowed if {
	held := {name | some name, one in _entries; entry.private_data_allowed(one) with data.policy as _policy}
	_all - held == {"private", "not searched"}
	not entry.private_data_allowed(_entries["private and personal"]) with data.policy as {}
}

test_nothing_hidden if {
	_all - {name | some name, one in _entries; entry.nothing_hidden(one)} == {"hidden", "not searched"}
}

test_without_instructions if {
	held := {name | some name, one in _entries; entry.without_instructions(one) with data.policy as _policy}
	_all - held == {"instructions", "not searched"}
	every one in _entries {
		not entry.without_instructions(one) with data.policy as {}
	}
}

test_small_enough if {
	held := {name | some name, one in _entries; entry.small_enough(one) with data.policy as _policy}
	_all - held == {"large", "no size"}
	every one in _entries {
		not entry.small_enough(one) with data.policy as {}
	}
}

test_of_another_type if {
	every wrong in [null, true, "", [], {}] {
		not entry.no_secret(_with({"secrets": wrong}))
		not entry.nothing_hidden(_with({"hidden": wrong}))
		not entry.without_instructions(_with({"instructions": wrong})) with data.policy as _policy
		not entry.private_data_allowed(_with({"private": wrong})) with data.policy as _policy
		not entry.small_enough(_with({"bytes": wrong})) with data.policy as _policy
		not entry.small_enough(_one) with data.policy as {"memory": {"entry_bytes": wrong}}
	}
	every wrong in [null, true, 0, [], {}] {
		not entry.origin_known(_with({"origin": {"name": wrong}})) with data.policy as _policy
	}
	listed := {"memory": {"origins": ["trusted"], "sensitivities": [{}]}}
	not entry.origin_known(_with({"origin": {"kind": 0}})) with data.policy as listed
	not entry.sensitivity_known(_with({"sensitivity": 0})) with data.policy as listed
}
