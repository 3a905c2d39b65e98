package admission.limits.subagent_test

import data.admission.limits.subagent
import future.keywords.not

_policy := {"subagents": {
	"operations": {
		"spawn": {"tool": "start", "timeout_seconds": 10},
		"poll": {"tool": "look", "timeout_seconds": 5},
	},
	"lifetime_seconds": 60,
	"turns": 50,
	"line_bytes": 100,
}}

_clean := {
	"operation": "poll",
	"child": {"stated": true, "id_valid": true, "id": "k"},
	"limit_turns": {"stated": false},
	"timeout_seconds": {"stated": false},
}

_limits := {
	"operation": "poll",
	"child": "k",
	"turns": 50,
	"line_bytes": 100,
	"timeout_seconds": 5,
	"lifetime_seconds": 60,
}

_amount(number) := {"stated": true, "requested": number}

_changes := {
	"nothing": {},
	"most turns": {"limit_turns": _amount(50)},
	"too many turns": {"limit_turns": _amount(51)},
	"too long": {"timeout_seconds": _amount(6)},
	"less": {"limit_turns": _amount(3), "timeout_seconds": _amount(2)},
	"starting": {"operation": "spawn", "child": {"stated": false}},
	"other operation": {"operation": "other"},
	"child is null": {"child": {"id": null}},
	"turns lost": {"limit_turns": {"stated": true}},
	"turns are null": {"limit_turns": _amount(null)},
	"timeout is text": {"timeout_seconds": _amount("1")},
}

_wanted := {
	"nothing": _limits,
	"most turns": _limits,
	"too many turns": _limits,
	"too long": _limits,
	"less": object.union(_limits, {"turns": 3, "timeout_seconds": 2}),
	"starting": object.union(_limits, {"operation": "spawn", "child": "new", "timeout_seconds": 10}),
}

test_complete if {
	every name, limits in _wanted {
		found := subagent.limits with input as object.union(_clean, _changes[name]) with data.policy as _policy
		found == limits
	}
}

test_incomplete if {
	every name in object.keys(_changes) - object.keys(_wanted) {
		not subagent.limits with input as object.union(_clean, _changes[name]) with data.policy as _policy
	}
	every path in ["operation", "child", "child/id", "limit_turns", "timeout_seconds", "limit_turns/stated"] {
		not subagent.limits with input as json.remove(_clean, [path]) with data.policy as _policy
	}
}

test_values_missing if {
	every path in ["operations", "operations/poll", "lifetime_seconds", "turns", "line_bytes"] {
		policy := {"subagents": json.remove(_policy.subagents, [path])}
		not subagent.limits with input as _clean with data.policy as policy
	}
	not subagent.limits with input as object.union(_clean, {"limit_turns": _amount(1)})
		with data.policy as json.patch(_policy, [{"op": "replace", "path": "/subagents/turns", "value": "50"}])
}
