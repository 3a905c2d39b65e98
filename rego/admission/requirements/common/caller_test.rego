package admission.requirements.common.caller_test

import data.admission.requirements.common.caller
import future.keywords.not

callers := {"unscoped": ["process"], "certificates": {"CN=one": ["license"]}}

asked_by(one) := {"point": "license", "caller": one}

test_a_way_that_needs_no_points if {
	caller.caller_in_scope with input as asked_by({"via": "process", "points": []})
		with data.policy.callers as callers
}

test_a_token_with_this_point if {
	caller.caller_in_scope with input as asked_by({"via": "token", "points": ["source", "license"]})
		with data.policy.callers as callers
}

test_a_certificate_with_this_point if {
	caller.caller_in_scope with input as asked_by({"via": "certificate", "principal": "CN=one", "points": []})
		with data.policy.callers as callers
}

test_a_token_that_may_approve_asks_about_administration if {
	officer := {"via": "token", "points": [], "approves": ["license"]}
	caller.caller_in_scope with input as {"point": "administration", "caller": officer} with data.policy.callers as callers
	not caller.caller_in_scope with input as asked_by(officer) with data.policy.callers as callers
	every approves in [[], null, "license", {"license": true}] {
		not caller.caller_in_scope with input as {
			"point": "administration",
			"caller": {"via": "token", "points": [], "approves": approves},
		}
			with data.policy.callers as callers
	}
}

test_nobody_else if {
	every one in [
		{"via": "token", "points": ["source"]},
		{"via": "token", "principal": "CN=one", "points": ["source"]},
		{"via": "certificate", "principal": "CN=two", "points": ["license"]},
		{"via": "loopback", "points": ["license"]},
		{"via": "none", "points": []},
		{"points": ["license"]},
		{},
		null,
	] {
		not caller.caller_in_scope with input as asked_by(one) with data.policy.callers as callers
	}
}

test_a_certificate_at_another_point if {
	not caller.caller_in_scope with input as {
		"point": "source",
		"caller": {"via": "certificate", "principal": "CN=one", "points": []},
	}
		with data.policy.callers as callers
}

test_only_a_token_asks_about_administration_for_what_it_may_approve if {
	officer := {"via": "certificate", "principal": "CN=one", "points": [], "approves": ["license"]}
	not caller.caller_in_scope with input as {"point": "administration", "caller": officer}
		with data.policy.callers as callers
}

test_without_values_nobody if {
	not caller.caller_in_scope with input as asked_by({"via": "process", "points": []})
		with data.policy.callers as {}
}
