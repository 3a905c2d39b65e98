package admission.requirements.tool_call.fallback_test

import data.admission.requirements.tool_call.fallback
import future.keywords.not

_empty := {"size": 0, "names": [], "conditional": {}, "selectors": {}}

_policy := {
	"tool_lookup": {
		"ranges": [], "host_paths": [], "path_patterns": [],
		"tools": {"read": {"selectors": ["read"], "values": {}}, "write": {"selectors": [], "values": {}}},
		"policies": {name: {"deny": _empty, "confirm": _empty, "allow": {
			"size": 1,
			"names": ["s/free"],
			"covers": [{}],
			"selectors": {"read": {"by name": {"rules": [0], "size": 1}}},
		}} |
			some name in ["asks", "shows", "hides"]
		},
	},
	"tools": {
		"tools": {"read": {"side_effects": ["read"]}, "write": {"side_effects": ["write"]}},
		"policies": {
			"asks": {"base": "confirm_all", "principals": "any"},
			"shows": {"base": "deny_all_visible", "principals": "any"},
			"hides": {"base": "deny_all", "principals": "any"},
		},
	},
}

_request(policy, tool) := {
	"context": {"policy": policy, "cwd": "/work"},
	"call": {"tool": tool, "touches": [], "unplaced": false},
	"destinations": [],
	"paths": [],
	"commands": [],
	"values": [],
}

_requests := [_request(policy, tool) |
	some policy in ["asks", "shows", "hides", "unknown", null]
	some tool in ["read", "write", "unknown"]
]

test_decided if {
	found := {[request.context.policy, request.call.tool] |
		some request in _requests
		fallback.decided with input as request with data.policy as _policy
	}
	found == {
		["asks", "read"], ["asks", "write"], ["asks", "unknown"], ["shows", "read"], ["hides", "read"],
	}
}

test_decided_by_rule if {
	found := {[request.context.policy, request.call.tool] |
		some request in _requests
		fallback.decided_by_rule with input as request with data.policy as _policy
	}
	found == {["asks", "read"], ["shows", "read"], ["hides", "read"]}
}

test_facts_missing if {
	every lost in ["context", "context/policy", "call", "destinations", "paths", "commands", "values"] {
		request := json.remove(_request("shows", "read"), [lost])
		not fallback.decided with input as request with data.policy as _policy
		not fallback.decided_by_rule with input as request with data.policy as _policy
	}
}

test_values_missing if {
	every lost in ["tools/policies/shows", "tool_lookup/policies/shows/allow", "tool_lookup/policies/shows/deny/size"] {
		policy := json.remove(_policy, [lost])
		not fallback.decided with input as _request("shows", "read") with data.policy as policy
		not fallback.decided_by_rule with input as _request("shows", "read") with data.policy as policy
	}
	not fallback.decided with input as _request("asks", "read") with data.policy as {}
}
