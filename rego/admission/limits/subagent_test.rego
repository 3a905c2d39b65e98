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

_of(change) := limits if {
	limits := subagent.limits with input as object.union(_clean, change) with data.policy as _policy
}

_amount(number) := {"stated": true, "asked": number}

test_attending if {
	_of({}) == _limits
	_of({"limit_turns": _amount(50)}) == _limits
	_of({"limit_turns": _amount(51)}) == _limits
	_of({"timeout_seconds": _amount(6)}) == _limits
	fewer := object.union(_limits, {"turns": 3, "timeout_seconds": 2})
	_of({"limit_turns": _amount(3), "timeout_seconds": _amount(2)}) == fewer
}

test_starting if {
	wanted := object.union(_limits, {"operation": "spawn", "child": "new", "timeout_seconds": 10})
	_of({"operation": "spawn", "child": {"stated": false}}) == wanted
}

test_incomplete if {
	every path in ["operation", "child", "child/id", "limit_turns", "timeout_seconds", "limit_turns/stated"] {
		not subagent.limits with input as json.remove(_clean, [path]) with data.policy as _policy
	}
	not _of({"operation": "other"})
	not _of({"child": {"id": null}})
	not _of({"limit_turns": {"stated": true}})
	not _of({"limit_turns": _amount(null)})
	not _of({"timeout_seconds": _amount("1")})
}

test_values_missing if {
	every path in ["operations", "operations/poll", "lifetime_seconds", "turns", "line_bytes"] {
		policy := {"subagents": json.remove(_policy.subagents, [path])}
		not subagent.limits with input as _clean with data.policy as policy
	}
	not subagent.limits with input as object.union(_clean, {"limit_turns": _amount(1)})
		with data.policy as json.patch(_policy, [{"op": "replace", "path": "/subagents/turns", "value": "50"}])
}
