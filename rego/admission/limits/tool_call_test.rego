package admission.limits.tool_call_test

import data.admission.limits.tool_call
import future.keywords.not

_empty := {"size": 0, "names": [], "conditional": {}, "selectors": {}}

_allow := {
	"size": 1,
	"names": ["s/free"],
	"covers": [{}],
	"selectors": {"read": {"by name": {"rules": [0], "size": 1}}},
}

_policy := {
	"tool_lookup": {
		"ranges": [], "host_paths": [], "path_patterns": [],
		"tools": {name: {"selectors": [name], "values": {}} | some name in ["read", "write", "run"]},
		"policies": {"p": {
			"deny": object.union(_empty, {"names": ["s/stop"], "conditional": {}, "selectors": {
				"run": {"host https://x.example.com": 0},
			}}),
			"confirm": object.union(_empty, {"names": ["s/ask"], "conditional": {}, "selectors": {"write": {"always": 0}}}),
			"allow": _allow,
		}},
	},
	"tools": {
		"tools": {
			"read": {"side_effects": ["read"]}, "write": {"side_effects": ["write"]}, "run": {"side_effects": ["execute"]},
		},
		"policies": {"p": {"base": "confirm_all", "principals": "any"}},
		"limits": {"seconds": 30, "result_bytes": 2000},
	},
}

_request := {
	"now": 100,
	"context": {"policy": "p", "cwd": "/work"},
	"caller": {"principal": "agent"},
	"call": {"tool": "read", "touches": [], "unplaced": false},
	"destinations": [],
	"paths": [],
	"commands": [],
	"command_parts": [],
	"values": [],
	"prefixes": [{
		"id": "p1", "tool": "run", "principal": "agent", "cwd": "/work", "words": ["ls"], "approver": "ana",
		"expires_at": 200, "revoked": false,
	}],
}

_limits := {
	"tool": "read",
	"seconds": 30,
	"result_bytes": 2000,
	"side_effects": ["read"],
	"record_side_effect": true,
	"rule": "s/free",
	"basis": "rule",
}

# What is changed in the request, and what its limits say otherwise.
_differences := {
	"a rule": [{}, {}],
	"a person whom a rule asks": [
		{"call": {"tool": "write", "touches": [], "unplaced": false}},
		{"tool": "write", "side_effects": ["write"], "rule": "s/ask", "basis": "approval"},
	],
	"a person": [
		{"call": {"tool": "run", "touches": [], "unplaced": false}},
		{"tool": "run", "side_effects": ["execute"], "rule": "base/confirm_all", "basis": "approval"},
	],
	"a prefix": [
		# regal ignore:line-length
		{"call": {"tool": "run", "touches": [], "unplaced": false}, "commands": [{"id": "c", "canonical": true, "words": ["ls", "-l"], "short": [], "parts": 0, "patterns": [], "touches": []}]},
		{"tool": "run", "side_effects": ["execute"], "rule": "prefix:p1", "basis": "argument_text_prefix"},
	],
}

test_complete if {
	every changed in _differences {
		request := object.union(_request, changed[0])
		limits := object.union(_limits, changed[1])
		tool_call.limits == limits with input as request with data.policy as _policy
	}
}

# What a level lowers is not allowed by a rule, and says so.
test_limits_of_what_is_refused if {
	host := {"id": "x", "canonical": true, "origin": "https://x.example.com"}
	run := {"tool": "run", "touches": [], "unplaced": false}
	refused := object.union(_request, {"call": run, "destinations": [host]})
	by_rule := tool_call.limits with input as refused with data.policy as _policy
	[by_rule.rule, by_rule.basis] == ["s/stop", "level"]
	hidden := object.union(_request, {"context": {"policy": "q"}})
	by_base := tool_call.limits with input as hidden with data.policy as _policy
	[by_base.rule, by_base.basis] == ["base/deny_all", "level"]
	other := {"call": {"tool": "other", "touches": [], "unplaced": false}}
	unknown := tool_call.limits with input as object.union(_request, other) with data.policy as _policy
	unknown.side_effects == ["read", "write", "network", "execute", "destructive"]
}

test_incomplete if {
	every lost in ["call", "call/tool"] {
		not tool_call.limits with input as json.remove(_request, [lost]) with data.policy as _policy
	}
}

test_values_missing if {
	every lost in [
		"tools", "tools/limits", "tools/limits/seconds", "tools/limits/result_bytes", "tools/tools",
		"tools/tools/read/side_effects",
	] {
		not tool_call.limits with input as _request with data.policy as json.remove(_policy, [lost])
	}
}
