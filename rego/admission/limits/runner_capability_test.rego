package admission.limits.runner_capability_test

import data.admission.limits.runner_capability
import future.keywords.not

_clean := {"harness": "own", "tools": 2, "names": ["a", "b"], "source": "probed"}

test_complete if {
	limits := runner_capability.limits with input as _clean
	limits == {"harness": "own", "tools": ["a", "b"], "source": "probed"}
}

test_incomplete if {
	every field, _ in _clean {
		not runner_capability.limits with input as json.remove(_clean, [field])
	}
	every change in [{"tools": 3}, {"names": null}, {"source": null}, {"harness": null}] {
		not runner_capability.limits with input as object.union(_clean, change)
	}
}
