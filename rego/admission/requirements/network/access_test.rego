package admission.requirements.network.access_test

import data.admission.requirements.network.access
import future.keywords.not

_policy := {"networks": {"fetch": {"max_urls": 2}}}

_with(name, value) := {"network": {name: value}}

test_enabled if {
	access.enabled with input as _with("enabled", true)
	every request in [_with("enabled", false), _with("enabled", "true"), {"network": {}}, {}] {
		not access.enabled with input as request
	}
}

test_count_admitted if {
	held := {number |
		some number in [-1, 0, 1, 2, 3, "1", null]
		access.count_admitted with input as _with("urls", number) with data.policy as _policy
	}
	held == {1, 2}
	not access.count_admitted with input as {} with data.policy as _policy
	every policy in [{}, {"networks": {"fetch": {}}}] {
		not access.count_admitted with input as _with("urls", 1) with data.policy as policy
	}
}

test_budget_left if {
	clean := {"network": {"requests_used": 0, "max_requests": 1}}
	access.budget_left with input as clean
	every request in [
		object.union(clean, {"network": {"requests_used": 1}}),
		object.union(clean, {"network": {"requests_used": -1}}),
		object.union(clean, {"network": {"requests_used": null}}),
		object.union(clean, {"network": {"max_requests": 0}}),
		object.union(clean, {"network": {"max_requests": "1"}}),
		json.remove(clean, ["network/requests_used"]),
		json.remove(clean, ["network/max_requests"]),
		{},
	] {
		not access.budget_left with input as request
	}
}

test_urls_are_a_number if {
	policy := {"networks": {"fetch": {"max_urls": {}}}}
	every wrong in [null, true, "", [], {}] {
		not access.count_admitted with input as _with("urls", wrong) with data.policy as policy
	}
}
