package admission.requirements.code_execution.boundary_test

import data.admission.lib.boundary
import data.admission.lib.code_execution_test
import data.admission.requirements.code_execution.boundary as requirement
import future.keywords.not

_policy := code_execution_test.policy

_run := code_execution_test.run

_without(path) := json.remove(_policy, [path])

_open(name) := object.union(_run, {"boundaries": [one | some one in _run.boundaries; one.boundary != name]})

test_complete if {
	requirement.complete with input as _run
	not requirement.complete with input as object.union(_run, {"required": {"boundaries": [{"id": "files"}]}})
	not requirement.complete with input as {}
}

test_enforced if {
	every name in boundary.names {
		requirement.enforced({"id": name}) with input as _run with data.policy as _policy
		not requirement.enforced({"id": name}) with input as _open(name) with data.policy as _policy
	}
	not requirement.enforced({}) with input as _run with data.policy as _policy
	not requirement.enforced({"id": "files"}) with input as _run
		with data.policy as _without("sandbox/floor/boundaries/files")
}
