package admission.requirements.source.network_test

import data.admission.requirements.source.network
import future.keywords.not

_clean := {"bundle": {"network": {"enabled": true, "budget": {"max_requests": 3}, "audit_required": true}}}

_off := object.union(_clean, {"bundle": {"network": {"enabled": false}}})

_fixture := {"kind": "fixture", "remote": false}

_external := {"kind": "external", "remote": true, "url": {"canonical": true}, "requests_used": 2}

_records := {
	"fixture": _fixture,
	"external": _external,
	"first": object.union(_external, {"requests_used": 0}),
	"budget used up": object.union(_external, {"requests_used": 3}),
	"less than nothing used": object.union(_external, {"requests_used": -1}),
	"use not counted": json.remove(_external, ["requests_used"]),
	"use is null": object.union(_external, {"requests_used": null}),
	"no kind": json.remove(_external, ["kind"]),
	"fixture with an address": object.union(_external, {"kind": "fixture"}),
	"nothing": {},
}

test_access_enabled if {
	held := {name | some name, record in _records; network.access_enabled(record) with input as _clean}
	held == {"fixture", "external", "first", "budget used up", "less than nothing used", "use not counted", "use is null"}
}

test_access_disabled if {
	every request in [
		_off,
		{},
		json.remove(_clean, ["bundle/network"]),
		json.remove(_clean, ["bundle/network/enabled"]),
		object.union(_clean, {"bundle": {"network": {"enabled": "true"}}}),
	] {
		held := {name | some name, record in _records; network.access_enabled(record) with input as request}
		held == {"fixture"}
	}
}

test_budget_left if {
	held := {name | some name, record in _records; network.budget_left(record) with input as _clean}
	held == {"fixture", "external", "first"}
}

test_no_budget if {
	every request in [
		{},
		json.remove(_clean, ["bundle/network/budget"]),
		json.remove(_clean, ["bundle/network/budget/max_requests"]),
		object.union(_clean, {"bundle": {"network": {"budget": {"max_requests": null}}}}),
		object.union(_clean, {"bundle": {"network": {"budget": {"max_requests": "9"}}}}),
		object.union(_clean, {"bundle": {"network": {"budget": {"max_requests": 0}}}}),
	] {
		held := {name | some name, record in _records; network.budget_left(record) with input as request}
		held == {"fixture"}
	}
}

test_audited if {
	requests := {
		"clean": _clean,
		"off": object.union(_clean, {"bundle": {"network": {"audit_required": false}}}),
		"not stated": json.remove(_clean, ["bundle/network/audit_required"]),
		"null": object.union(_clean, {"bundle": {"network": {"audit_required": null}}}),
		"no network policy": {"bundle": {}},
	}
	{name | some name, request in requests; network.audited with input as request} == {"clean"}
}
