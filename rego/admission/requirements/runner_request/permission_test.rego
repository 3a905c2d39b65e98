package admission.requirements.runner_request.permission_test

import data.admission.requirements.runner_request.permission
import future.keywords.not

_policy := {"runners": {"permission_policies": ["ask"]}}

_agent := {"permission_policy_stated": true, "permission_policy": "ask"}

_requests := {
	"clean": {"agent": _agent},
	"not stated": {"agent": {"permission_policy_stated": false}},
	"other policy": {"agent": object.union(_agent, {"permission_policy": "auto"})},
	"policy is null": {"agent": object.union(_agent, {"permission_policy": null})},
	"lost policy": {"agent": json.remove(_agent, ["permission_policy"])},
	"no word on the policy": {"agent": json.remove(_agent, ["permission_policy_stated"])},
	"no agent": {},
}

test_policy_admitted if {
	held := {name |
		some name, request in _requests
		permission.policy_admitted with input as request with data.policy as _policy
	}
	held == {"clean", "not stated"}
}

test_permitted if {
	held := {name | some name, request in _requests; permission.permitted({"kind": "tool"}) with input as request}
	held == {"clean", "other policy"}
	not permission.permitted({}) with input as _requests.clean
}

test_values_missing if {
	every policy in [{}, {"runners": {"permission_policies": []}}] {
		not permission.policy_admitted with input as _requests.clean with data.policy as policy
	}
}
