package admission.limits.artifact_test

import data.admission.limits.artifact
import future.keywords.not

_asked := {
	"sha256": "a",
	"kind": "code",
	"checks": [
		{"id": "sandbox", "passed": true, "ran_in": "container", "decision_id": "d1"},
		{"id": "validation", "passed": true, "ran_in": "container", "decision_id": "d2"},
	],
}

test_limits if {
	artifact.limits == {
		"sha256": "a", "kind": "code", "ran_in": "container", "sandbox_decision": "d1", "validation_decision": "d2",
	} with input as _asked
	every path in [
		"sha256", "kind", "checks", "checks/0", "checks/1", "checks/0/ran_in", "checks/0/decision_id",
		"checks/1/decision_id", "checks/1/passed",
	] {
		not artifact.limits with input as json.remove(_asked, [path])
	}
}
