package admission.limits.tool_visibility_test

import data.admission.limits.tool_visibility
import future.keywords.not

_policy := {
	"results": {"markers": {"phrases": [], "tokens": []}},
	"tool_lookup": {
		"tools": {"read": {"selectors": ["*"], "values": {}}, "write": {"selectors": ["*"], "values": {}}},
		"profiles": {"all": {"*": true}},
	},
	"tools": {
		"tools": {"read": {"definition": "none"}, "write": {"definition": "any"}},
		"policies": {"p": {"base": "confirm_all", "principals": "any"}},
	},
}

_request := {
	"context": {"policy": "p", "profile": "all"},
	"stops": [],
	"agents": [],
	"tools": [
		{"id": "read", "name": "read", "occurrences": 1, "hidden": 0, "instructions": 0},
		{"id": "write", "name": "write", "occurrences": 1, "hidden": 0, "instructions": 0}, {"id": "#2", "occurrences": 1},
	],
}

test_only_what_may_be_shown if {
	tool_visibility.limits == {"visible": ["read"]} with input as _request with data.policy as _policy
}

test_nothing_to_show if {
	hidden := json.remove(_request, ["context/policy"])
	tool_visibility.limits == {"visible": []} with input as hidden with data.policy as _policy
	tool_visibility.limits == {"visible": []} with input as _request with data.policy as {}
	empty := object.union(_request, {"tools": []})
	tool_visibility.limits == {"visible": []} with input as empty with data.policy as _policy
}

test_incomplete if {
	every request in [{}, {"tools": null}, json.remove(_request, ["tools"])] {
		not tool_visibility.limits with input as request with data.policy as _policy
	}
}
