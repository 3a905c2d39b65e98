package admission.requirements.tool_call.rule_test

import data.admission.requirements.tool_call.rule
import future.keywords.not

_section := {"size": 1, "names": ["s/one"], "conditional": {}, "selectors": {"web": {"host https://x.example.com": 0}}}

_policy := {"tool_lookup": {
	"ranges": [], "host_paths": [], "path_patterns": [],
	"tools": {"web": {"selectors": ["web"], "values": {}}},
	"policies": {"p": {"deny": _section, "confirm": _section}},
}}

_request := {
	"context": {"policy": "p", "cwd": "/work"},
	"call": {"tool": "web", "touches": [], "unplaced": false},
	"destinations": [{"id": "a", "canonical": true, "origin": "https://a.example.com"}],
	"paths": [],
	"commands": [],
	"values": [],
}

test_no_rule_matches if {
	rule.no_deny_rule with input as _request with data.policy as _policy
	rule.no_confirm_rule with input as _request with data.policy as _policy
}

test_a_rule_matches if {
	found := {"id": "x", "canonical": true, "origin": "https://x.example.com"}
	request := object.union(_request, {"destinations": array.concat(_request.destinations, [found])})
	not rule.no_deny_rule with input as request with data.policy as _policy
	not rule.no_confirm_rule with input as request with data.policy as _policy
}

test_facts_missing if {
	every lost in ["context", "context/policy", "call", "call/tool", "destinations", "paths", "commands", "values"] {
		not rule.no_deny_rule with input as json.remove(_request, [lost]) with data.policy as _policy
		not rule.no_confirm_rule with input as json.remove(_request, [lost]) with data.policy as _policy
	}
}

test_values_missing if {
	every lost in ["tool_lookup", "tool_lookup/tools/web", "tool_lookup/policies/p"] {
		policy := json.remove(_policy, [lost])
		not rule.no_deny_rule with input as _request with data.policy as policy
		not rule.no_confirm_rule with input as _request with data.policy as policy
	}
}
