package admission.requirements.tool_call.agent_test

import data.admission.requirements.tool_call.agent
import future.keywords.not

_agent := {"id": "a1", "active": true, "tools": ["http_get", "files_read"]}

_call := {"call": {"tool": "http_get"}}

test_an_active_agent_calls_its_tools if {
	agent.agent_active(_agent)
	agent.tool_approved(_agent) with input as _call
}

test_an_ended_agent if {
	every wrong in [false, null, "true", 1] {
		not agent.agent_active(object.union(_agent, {"active": wrong}))
	}
	not agent.agent_active(object.remove(_agent, ["active"]))
}

test_another_tool if {
	every tool in ["shell", "HTTP_GET", "http", "", null, ["http_get"]] {
		not agent.tool_approved(_agent) with input as {"call": {"tool": tool}}
	}
	every tool in [null, true, 0, [], {}] {
		not agent.tool_approved(object.union(_agent, {"tools": [tool]})) with input as {"call": {"tool": tool}}
	}
	not agent.tool_approved(_agent) with input as {"call": {}}
}

test_tools_missing_or_mistyped if {
	every wrong in [null, "http_get", {"http_get": "http_get"}, []] {
		not agent.tool_approved(object.union(_agent, {"tools": wrong})) with input as _call
	}
	not agent.tool_approved(object.remove(_agent, ["tools"])) with input as _call
}
