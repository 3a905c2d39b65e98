package admission.limits.administration_test

import data.admission.limits.administration
import future.keywords.not

test_limits_of_each_act if {
	administration.limits == {"act": "grant_approval", "id": "a1", "seconds": 0} with input as {
		"act": "grant_approval",
		"id": "a1",
	}
	administration.limits == {"act": "stop", "id": "a1", "seconds": 0} with input as {"act": "stop", "id": "a1"}
	administration.limits == {"act": "issue_token", "id": "a1", "seconds": 60} with input as {
		"act": "issue_token",
		"id": "a1",
		"scope": {"seconds": 60},
	}
	administration.limits == {"act": "approve_prefix", "id": "a1", "seconds": 70} with input as {
		"act": "approve_prefix",
		"id": "a1",
		"prefix": {"seconds": 70},
	}
}

test_no_limits_without_each_fact if {
	every request in [
		{"act": "grant_approval"},
		{"id": "a1"},
		{"act": "issue_token", "id": "a1"},
		{"act": "approve_prefix", "id": "a1"},
		{"act": "other", "id": "a1"},
	] {
		not administration.limits with input as request
	}
}
