package admission.requirements.adapter.ability_test

import data.admission.requirements.adapter.ability
import future.keywords.not

_policy := {"adapters": {"executions": ["in_process"], "operations": ["tools/list", "tools/call"]}}

test_execution_admitted if {
	ability.execution_admitted with input as {"manifest": {"execution": "in_process"}} with data.policy as _policy
	every facts in [{"execution": "subprocess"}, {"execution": null}, {"execution": ["in_process"]}, {}] {
		not ability.execution_admitted with input as {"manifest": facts} with data.policy as _policy
	}
	every policy in [{}, {"adapters": {}}, {"adapters": {"executions": []}}] {
		not ability.execution_admitted with input as {"manifest": {"execution": "in_process"}} with data.policy as policy
	}
}

test_operation_admitted if {
	ability.operation_admitted({"id": "tools/call", "name": "tools/call"}) with data.policy as _policy
	every operation in [{"id": "#0"}, {"id": "a", "name": null}, {"name": "resources/read"}, {"name": "TOOLS/CALL"}, {}] {
		not ability.operation_admitted(operation) with data.policy as _policy
	}
	every policy in [{}, {"adapters": {}}, {"adapters": {"operations": []}}] {
		not ability.operation_admitted({"id": "tools/call", "name": "tools/call"}) with data.policy as policy
	}
}

test_no_capability if {
	ability.no_capability with input as {"manifest": {"capabilities": []}}
	every capabilities in [[{"id": "mcp_discovery"}], null, {}, ""] {
		not ability.no_capability with input as {"manifest": {"capabilities": capabilities}}
	}
	not ability.no_capability with input as {"manifest": {}}
	not ability.no_capability with input as {}
}
