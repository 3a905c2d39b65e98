package admission.requirements.common.caller_test

import data.admission.requirements.common.caller
import future.keywords.not

callers := {"unscoped": ["process"], "certificates": {"CN=one": ["license"]}}

holds(asked) if caller.caller_in_scope with input as {"point": "license", "caller": asked}
	with data.policy.callers as callers

test_a_way_that_needs_no_points if holds({"via": "process", "points": []})

test_a_token_with_this_point if holds({"via": "token", "points": ["source", "license"]})

test_a_certificate_with_this_point if holds({"via": "certificate", "principal": "CN=one", "points": []})

test_a_token_without_this_point if not holds({"via": "token", "points": ["source"]})

test_a_certificate_that_is_not_listed if not holds({"via": "certificate", "principal": "CN=two", "points": ["license"]})

test_points_count_for_tokens_only if not holds({"via": "loopback", "points": ["license"]})

test_nobody if {
	not holds({"via": "none", "points": []})
	not holds({"points": ["license"]})
	not holds(null)
}

test_without_values_nobody if {
	not caller.caller_in_scope with input as {"point": "license", "caller": {"via": "process", "points": []}}
		with data.policy.callers as {}
}
