package admission.requirements.tool_call.tool_test

import data.admission.requirements.tool_call.tool
import future.keywords.not

_policy := {
	"tool_lookup": {
		"tools": {"files_read": {"selectors": ["files_read"], "values": {}}},
		"profiles": {"reading": {"files_read": true}, "nothing": {}},
	},
	"tools": {"tools": {"files_read": {}}},
}

_request := {"context": {"profile": "reading"}, "call": {"tool": "files_read"}}

test_clean if {
	tool.tool_known with input as _request with data.policy as _policy
	tool.tool_in_profile with input as _request with data.policy as _policy
}

test_another_name if {
	every name in ["files_Read", "fіles_read", "files_read ", "", null] {
		request := object.union(_request, {"call": {"tool": name}})
		not tool.tool_known with input as request with data.policy as _policy
		not tool.tool_in_profile with input as request with data.policy as _policy
	}
}

test_not_in_profile if {
	every profile in ["nothing", "unknown", null] {
		request := object.union(_request, {"context": {"profile": profile}})
		not tool.tool_in_profile with input as request with data.policy as _policy
	}
}

test_facts_missing if {
	every lost in ["context", "context/profile", "call", "call/tool"] {
		not tool.tool_in_profile with input as json.remove(_request, [lost]) with data.policy as _policy
	}
	not tool.tool_known with input as {} with data.policy as _policy
}

test_values_missing if {
	every policy in [{}, json.remove(_policy, ["tools/tools"]), json.remove(_policy, ["tool_lookup/tools"])] {
		not tool.tool_in_profile with input as _request with data.policy as policy
	}
	not tool.tool_known with input as _request with data.policy as {}
}
