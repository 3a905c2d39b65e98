package admission.requirements.runner_bind.address_test

import data.admission.requirements.runner_bind.address
import future.keywords.not

_policy := {"runners": {"listeners": {"addresses": ["loopback", "private"]}}}

_listener := {"reach": "private", "published": false}

_requests := {
	"clean": {"listener": _listener},
	"internet": {"listener": object.union(_listener, {"reach": "global"})},
	"published": {"listener": object.union(_listener, {"published": true})},
	"published is null": {"listener": object.union(_listener, {"published": null})},
	"no reach": {"listener": json.remove(_listener, ["reach"])},
	"no word on publishing": {"listener": json.remove(_listener, ["published"])},
	"no listener": {},
}

test_address_admitted if {
	held := {name |
		some name, request in _requests
		address.address_admitted with input as request with data.policy as _policy
	}
	held == object.keys(_requests) - {"internet", "no reach", "no listener"}
}

test_port_kept_inside if {
	held := {name | some name, request in _requests; address.port_kept_inside with input as request}
	held == {"clean", "internet", "no reach"}
}

test_values_missing if {
	every policy in [{}, {"runners": {"listeners": {"addresses": []}}}] {
		not address.address_admitted with input as _requests.clean with data.policy as policy
	}
}
