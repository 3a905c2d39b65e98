package admission.requirements.code_execution.probe_test

import data.admission.lib.code_execution_test
import data.admission.requirements.code_execution.probe
import future.keywords.not

_policy := code_execution_test.policy

_run := code_execution_test.run

_without(path) := json.remove(_policy, [path])

_tried(change) := object.union(_run, {"probes": [object.union(_run.probes[0], change)]})

test_probe if {
	probe.tried with input as _run with data.policy as _policy
	probe.made_here with input as _run with data.policy as _policy
	probe.recent with input as _run with data.policy as _policy
	not probe.tried with input as _tried({"id": "cell"}) with data.policy as _policy
	not probe.made_here with input as _tried({"machine": "b"}) with data.policy as _policy
	not probe.made_here with input as _tried({"authentic": null}) with data.policy as _policy
	not probe.recent with input as _tried({"probed_at": 1}) with data.policy as _policy
}

test_nothing_known if {
	not probe.tried with input as {} with data.policy as _policy
	not probe.made_here with input as {} with data.policy as _policy
	not probe.recent with input as {} with data.policy as _policy
	not probe.recent with input as _run with data.policy as _without("sandbox/probe_max_age_seconds")
}
