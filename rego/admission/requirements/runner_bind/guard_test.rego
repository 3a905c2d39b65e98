package admission.requirements.runner_bind.guard_test

import data.admission.requirements.runner_bind.guard
import future.keywords.not

_policy := {"runners": {"listeners": {"unguarded": ["loopback"], "guards": ["shared_token", "mutual_tls"]}}}

_gate(change) := object.union({"shared_token": false, "tokens": false, "tls": false, "mutual_tls": false}, change)

_request(reach, gate) := {"listener": {"reach": reach}, "gate": gate}

_requests := {
	"loopback": _request("loopback", _gate({})),
	"everywhere": _request("unspecified", _gate({})),
	"private": _request("private", _gate({})),
	"everywhere with a token": _request("unspecified", _gate({"shared_token": true})),
	"everywhere with certificates": _request("unspecified", _gate({"mutual_tls": true})),
	"everywhere with TLS of one side": _request("unspecified", _gate({"tls": true})),
	"everywhere with a guard that does not count": _request("unspecified", _gate({"tokens": true})),
	"everywhere with a word": _request("unspecified", _gate({"shared_token": "yes"})),
	"everywhere, no gate": {"listener": {"reach": "unspecified"}},
	"no listener, a token": {"gate": _gate({"shared_token": true})},
	"no listener": {"gate": _gate({})},
	"reach is null": _request(null, _gate({})),
}

test_guarded if {
	held := {name |
		some name, request in _requests
		guard.guarded with input as request with data.policy as _policy
	}
	held == {"loopback", "everywhere with a token", "everywhere with certificates", "no listener, a token"}
}

test_values_missing if {
	not guard.guarded with input as _requests.loopback with data.policy as {}
	not guard.guarded with input as _requests["everywhere with a token"] with data.policy as {}
}
