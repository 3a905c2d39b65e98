package admission.lib.artifact_test

import data.admission.lib.artifact
import future.keywords.not

_check := {"id": "sandbox", "passed": true, "ran_in": "container", "decision_id": "d1"}

test_passed if {
	artifact.passed("sandbox") == _check with input as {"checks": [_check]}
	not artifact.passed("validation") with input as {"checks": [_check]}
	every change in [{"id": null}, {"passed": false}, {"passed": null}, {"decision_id": null}] {
		not artifact.passed("sandbox") with input as {"checks": [object.union(_check, change)]}
	}
	not artifact.passed("sandbox") with input as {"checks": []}
	not artifact.passed("sandbox") with input as {}
}
