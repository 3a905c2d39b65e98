package admission.limits.skill_file_test

import data.admission.limits.skill_file
import future.keywords.not

_policy := {"skills": {"max_bytes": 100}}

test_complete if {
	limits := skill_file.limits with input as {"path": {"text": "scripts/run.sh"}} with data.policy as _policy
	limits == {"path": "scripts/run.sh", "max_bytes": 100}
}

test_incomplete if {
	every request in [{}, {"path": {}}, {"path": {"text": null}}] {
		not skill_file.limits with input as request with data.policy as _policy
	}
	not skill_file.limits with input as {"path": {"text": "scripts/run.sh"}} with data.policy as {"skills": {}}
}
