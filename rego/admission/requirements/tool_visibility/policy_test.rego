package admission.requirements.tool_visibility.policy_test

import data.admission.requirements.tool_visibility.policy
import future.keywords.not

_policy := {"tools": {"policies": {
	"open": {"base": "confirm_all", "principals": "any"},
	"own": {"base": "confirm_all", "principals": ["ana"]},
}}}

test_policy_known if {
	found := {name |
		some name, asked in {
			"open": {"policy": "open"},
			"none": {},
			"closed": {"policy": "closed"},
			"null": {"policy": null},
			"blank": {"policy": ""},
		}
		policy.policy_known with input as {"context": asked} with data.policy as _policy
	}
	found == {"open", "none"}
}

test_principal_admitted if {
	found := {[name, principal] |
		some name in ["open", "own", "closed"]
		some principal in ["ana", "ben", null]
		request := {"context": {"policy": name}, "caller": {"principal": principal}}
		policy.principal_admitted with input as request with data.policy as _policy
	}
	found == {["open", "ana"], ["open", "ben"], ["open", null], ["own", "ana"]}
	policy.principal_admitted with input as {"context": {}, "caller": {"principal": "ben"}} with data.policy as _policy
	not policy.principal_admitted with input as {"context": {"policy": "own"}, "caller": {}} with data.policy as _policy
}

test_values_missing if {
	request := {"context": {"policy": "open"}, "caller": {"principal": "ana"}}
	every values in [{}, {"tools": {}}, json.remove(_policy, ["tools/policies/open/principals"])] {
		not policy.principal_admitted with input as request with data.policy as values
	}
	not policy.policy_known with input as request with data.policy as {}
}
