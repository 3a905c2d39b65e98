package admission.requirements.record_read.scope_test

import data.admission.requirements.record_read.scope
import future.keywords.not

_callers := {"read_all": {"via": ["control"], "principals": ["auditor"]}}

_requests := {
	"own": {"whose": "own", "caller": {"via": "token", "principal": "ana"}},
	"own of an auditor": {"whose": "own", "caller": {"via": "token", "principal": "auditor"}},
	"own without a name": {"whose": "own", "caller": {"via": "shared_token"}},
	"own with an empty name": {"whose": "own", "caller": {"via": "token", "principal": ""}},
	"own with another type": {"whose": "own", "caller": {"via": "token", "principal": true}},
	"own without caller": {"whose": "own"},
	"all": {"whose": "all", "caller": {"via": "token", "principal": "ana"}},
	"all of an auditor": {"whose": "all", "caller": {"via": "token", "principal": "auditor"}},
	"all at the socket": {"whose": "all", "caller": {"via": "control", "principal": "user:ana"}},
	"all on loopback": {"whose": "all", "caller": {"via": "loopback"}},
	"other": {"whose": "some", "caller": {"via": "control", "principal": "auditor"}},
	"nothing said": {"caller": {"via": "control", "principal": "auditor"}},
}

_policies := {
	"shipped": {"callers": _callers},
	"no ways": {"callers": json.remove(_callers, ["read_all/via"])},
	"no principals": {"callers": json.remove(_callers, ["read_all/principals"])},
	"nothing": {},
}

_own contains [name, request] if {
	some name, _ in _policies
	some request in ["own", "own of an auditor"]
}

test_readable if {
	held := {[name, request] |
		some name, policy in _policies
		some request, asked in _requests
		scope.readable with input as asked with data.policy as policy
	}
	held == _own | {
		["shipped", "all of an auditor"],
		["shipped", "all at the socket"],
		["no ways", "all of an auditor"],
		["no principals", "all at the socket"],
	}
}

test_no_name_is_not_listed if {
	every wrong in [null, true, 0, [], {}] {
		policy := {"callers": {"read_all": {"principals": [wrong]}}}
		not scope.readable with input as {"whose": "all", "caller": {"principal": wrong}} with data.policy as policy
	}
}
