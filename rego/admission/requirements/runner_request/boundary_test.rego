package admission.requirements.runner_request.boundary_test

import data.admission.requirements.runner_request.boundary
import future.keywords.not

_policy := {"runners": {
	"backends": {"here": {"host": "runner"}, "there": {"host": "remote"}},
	"default_backend": "here",
	"enforcements": ["strict", "best_effort"],
	"boundaries": {
		"network": {"boundary": "egress", "enforced_by": ["kernel"]},
		"filesystem": {"boundary": "jail", "enforced_by": ["kernel"]},
	},
}}

_proof(name) := {"backend": "there", "boundary": name, "kind": "kernel", "enforced": true, "run": "this"}

_open := {"network": "unrestricted", "filesystem_stated": false, "enforcement": "undeclared"}

_closed(enforcement) := {
	"network": "restricted",
	"filesystem_stated": true,
	"filesystem": "off",
	"enforcement": enforcement,
}

_request(sandbox, permission, boundaries) := {
	"agent": {"sandbox_stated": true, "sandbox": sandbox},
	"sandbox_permission": permission,
	"boundaries": boundaries,
	"content": "this",
}

_both := [_proof("egress"), _proof("jail")]

_clean := _request("there", _closed("strict"), _both)

_requests := {
	"clean": _clean,
	"best effort": _request("there", _closed("best_effort"), _both),
	"nothing declared": _request("here", _open, []),
	"nothing declared on an unknown backend": _request("nowhere", _open, []),
	"here": _request("here", _closed("strict"), _both),
	"here by best effort": _request("here", _closed("best_effort"), _both),
	"no proof": _request("there", _closed("strict"), []),
	"no proof by best effort": _request("there", _closed("best_effort"), []),
	"only the network is proven": _request("there", _closed("strict"), [_proof("egress")]),
	"only the jail is proven": _request("there", _closed("strict"), [_proof("jail")]),
	"unknown backend": _request("nowhere", _closed("strict"), _both),
	"no agent": json.remove(_clean, ["agent"]),
	"no network": json.remove(_clean, ["sandbox_permission/network"]),
	"no word on the file system": json.remove(_clean, ["sandbox_permission/filesystem_stated"]),
	"no boundaries": json.remove(_clean, ["boundaries"]),
	"nothing": {},
}

test_enforcement_admitted if {
	held := {enforcement |
		some enforcement in ["strict", "best_effort", "undeclared", "hopeful", null]
		request := {"sandbox_permission": {"enforcement": enforcement}}
		boundary.enforcement_admitted with input as request with data.policy as _policy
	}
	held == {"strict", "best_effort", "undeclared"}
	not boundary.enforcement_admitted with input as {} with data.policy as _policy
	not boundary.enforcement_admitted with input as _clean with data.policy as {}
}

test_network_open_on_runner if {
	held := {name |
		some name, request in _requests
		boundary.network_open_on_runner with input as request with data.policy as _policy
	}
	refused := {"here", "here by best effort", "unknown backend", "no agent", "no network", "nothing"}
	held == object.keys(_requests) - refused
}

test_network_held if {
	held := {name |
		some name, request in _requests
		boundary.network_held with input as request with data.policy as _policy
	}
	held == {
		"clean", "best effort", "nothing declared", "nothing declared on an unknown backend",
		"only the network is proven", "no word on the file system",
	}
}

test_filesystem_held if {
	held := {name |
		some name, request in _requests
		boundary.filesystem_held with input as request with data.policy as _policy
	}
	held == {
		"clean", "best effort", "nothing declared", "nothing declared on an unknown backend",
		"only the jail is proven", "no network",
	}
}

test_values_missing if {
	not boundary.network_open_on_runner with input as _clean with data.policy as {}
	every policy in [{}, {"runners": {}}, json.remove(_policy, ["runners/boundaries"])] {
		not boundary.network_held with input as _clean with data.policy as policy
		not boundary.filesystem_held with input as _clean with data.policy as policy
	}
}
