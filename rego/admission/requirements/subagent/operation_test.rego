package admission.requirements.subagent.operation_test

import data.admission.requirements.subagent.operation
import future.keywords.not

_policy := {"subagents": {"operations": {"spawn": {"tool": "start", "timeout_seconds": 10}}}}

_clean := {
	"operation": "spawn",
	"limit_turns": {"stated": true, "requested": 1},
	"timeout_seconds": {"stated": true, "requested": 10},
}

_with(change) := object.union(_clean, change)

_requests := {
	"clean": _clean,
	"nothing stated": _with({"limit_turns": {"stated": false}, "timeout_seconds": {"stated": false}}),
	"many": _with({"limit_turns": {"requested": 51}, "timeout_seconds": {"requested": 1}}),
	"none": _with({"limit_turns": {"requested": 0}, "timeout_seconds": {"requested": 0}}),
	"fewer than none": _with({"limit_turns": {"requested": -1}, "timeout_seconds": {"requested": -1}}),
	"too long": _with({"timeout_seconds": {"requested": 11}}),
	"lost": json.remove(_clean, ["limit_turns/requested", "timeout_seconds/requested"]),
	"text": _with({"limit_turns": {"requested": "1"}, "timeout_seconds": {"requested": "1"}}),
	"no word": {"operation": "spawn", "limit_turns": {"requested": 1}, "timeout_seconds": {"requested": 1}},
	"other operation": _with({"operation": "stop"}),
	"no operation": json.remove(_clean, ["operation"]),
	"nothing": {},
}

test_operation_admitted if {
	held := {name |
		some name, one in _requests
		operation.operation_admitted with input as one with data.policy as _policy
	}
	held == object.keys(_requests) - {"other operation", "no operation", "nothing"}
}

test_turns_valid if {
	held := {name |
		some name, one in _requests
		operation.turns_valid with input as one with data.policy as _policy
	}
	held == {"clean", "nothing stated", "many", "too long", "other operation", "no operation"}
}

test_timeout_valid if {
	held := {name |
		some name, one in _requests
		operation.timeout_valid with input as one with data.policy as _policy
	}
	held == {"clean", "nothing stated", "many"}
}

test_values_missing if {
	every policy in [{}, {"subagents": {"operations": {"spawn": {"tool": "start"}}}}] {
		not operation.operation_admitted with input as _clean with data.policy as policy
		not operation.timeout_valid with input as _clean with data.policy as policy
		not operation.timeout_valid with input as _requests["nothing stated"] with data.policy as policy
	}
	operation.turns_valid with input as _clean with data.policy as {}
}
