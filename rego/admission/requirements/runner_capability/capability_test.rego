package admission.requirements.runner_capability.capability_test

import data.admission.requirements.runner_capability.capability
import future.keywords.not

_policy := {
	"runners": {"harnesses": {"own": {"custom_tools": "native"}, "other": {"custom_tools": "mcp"}}},
	"operations": {
		"profile": "easy",
		"profiles": {"easy": {"static_capabilities": true}, "hard": {"static_capabilities": false}},
	},
}

_hard := object.union(_policy, {"operations": {"profile": "hard"}})

_request(harness, tools, source) := {"harness": harness, "tools": tools, "source": source}

_requests := {
	"probed": _request("other", 2, "probed"),
	"assumed": _request("other", 2, "static"),
	"nobody asked": _request("other", 2, "none"),
	"own tools": _request("own", 2, "none"),
	"no tools": _request("other", 0, "none"),
	"unknown harness": _request("unknown", 2, "none"),
	"no harness": json.remove(_request("own", 2, "none"), ["harness"]),
	"no count": json.remove(_request("other", 0, "none"), ["tools"]),
	"count is null": _request("other", null, "none"),
	"no source": json.remove(_request("other", 2, "probed"), ["source"]),
}

_unaffected := {"own tools", "no tools"}

test_held if {
	every supported in [{"supported": false}, {}, {"supported": "yes"}] {
		flag := object.union({"flag": "mcpTools"}, supported)
		held := {name |
			some name, request in _requests
			capability.proven(flag) with input as request with data.policy as _policy
		}
		held == _unaffected
	}
	every request in _requests {
		capability.proven({"flag": "mcpTools", "supported": true}) with input as request with data.policy as _policy
		not capability.proven({}) with input as request with data.policy as _policy
	}
}

test_probed if {
	easy := {name |
		some name, request in _requests
		capability.probed with input as request with data.policy as _policy
	}
	easy == _unaffected | {"probed", "assumed"}
	hard := {name |
		some name, request in _requests
		capability.probed with input as request with data.policy as _hard
	}
	hard == _unaffected | {"probed"}
}

test_values_missing if {
	every policy in [{}, json.remove(_policy, ["operations/profile"]), json.remove(_policy, ["operations/profiles"])] {
		not capability.probed with input as _requests.assumed with data.policy as policy
	}
	not capability.proven({"flag": "mcpTools"}) with input as _requests["own tools"] with data.policy as {}
	not capability.probed with input as _requests["own tools"] with data.policy as {}
}
