package admission.requirements.tool_call.policy_test

import data.admission.requirements.tool_call.policy
import future.keywords.not

_policy := {"tools": {"policies": {
	"open": {"base": "confirm_all", "principals": "any"},
	"own": {"base": "confirm_all", "principals": ["ana"]},
}}}

_known(asked) if policy.policy_known with input as {"asked": asked} with data.policy as _policy

_admitted(asked, caller) if {
	policy.principal_admitted with input as {"asked": asked, "caller": caller} with data.policy as _policy
}

test_policy_known if {
	_known({"policy": "open"})
	_known({})
	not _known({"policy": "closed"})
	not _known({"policy": null})
	not _known({"policy": ""})
}

test_principal_admitted if {
	_admitted({"policy": "open"}, {})
	_admitted({"policy": "own"}, {"principal": "ana"})
	_admitted({}, {"principal": "ben"})
	not _admitted({"policy": "own"}, {"principal": "ben"})
	not _admitted({"policy": "own"}, {"principal": null})
	not _admitted({"policy": "own"}, {})
	not _admitted({"policy": "closed"}, {"principal": "ana"})
}

test_values_missing if {
	request := {"asked": {"policy": "open"}, "caller": {"principal": "ana"}}
	every values in [{}, {"tools": {}}, json.remove(_policy, ["tools/policies/open/principals"])] {
		not policy.principal_admitted with input as request with data.policy as values
	}
	not policy.policy_known with input as request with data.policy as {}
}
