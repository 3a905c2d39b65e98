package admission.requirements.code_execution.contract_test

import data.admission.lib.code_execution_test
import data.admission.requirements.code_execution.contract
import future.keywords.not

_policy := code_execution_test.policy

_run := code_execution_test.run

_without(path) := json.remove(_policy, [path])

test_network_denied if {
	contract.network_denied with input as _run with data.policy as _policy
	asking := object.union(_run, {"hints": {"network_access": {"stated": true, "value": "allowed"}}})
	not contract.network_denied with input as asking with data.policy as _policy
	not contract.network_denied with input as {} with data.policy as _policy
}

test_contract_holds if {
	contract.contract_holds with input as _run with data.policy as _policy
	unknown := object.union(_run, {"action": {"unknown_fields": 1}})
	not contract.contract_holds with input as unknown with data.policy as _policy
	not contract.contract_holds with input as {} with data.policy as _policy
	not contract.contract_holds with input as _run with data.policy as _without("code/hints")
}

test_entrypoint_admitted if {
	contract.entrypoint_admitted with input as _run with data.policy as _policy
	elsewhere := object.union(_run, {"action": {"entrypoint": {"value": "run.py"}}})
	not contract.entrypoint_admitted with input as elsewhere with data.policy as _policy
	not contract.entrypoint_admitted with input as {} with data.policy as _policy
	not contract.entrypoint_admitted with input as _run with data.policy as _without("code/entrypoints")
}
