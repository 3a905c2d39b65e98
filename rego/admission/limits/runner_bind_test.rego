package admission.limits.runner_bind_test

import data.admission.limits.runner_bind
import future.keywords.not

_policy := {"runners": {"listeners": {"unguarded": ["loopback"]}}}

_open := {"shared_token": false, "tokens": false, "tls": false, "mutual_tls": false}

_request(reach, gate) := {
	"listener": {"host": "a", "port": 80, "published": false, "reach": reach},
	"gate": object.union(_open, gate),
}

_limits(loopback, authentication) := {
	"host": "a",
	"port": 80,
	"loopback": loopback,
	"authentication": authentication,
}

test_open if {
	limits := runner_bind.limits with input as _request("loopback", {}) with data.policy as _policy
	limits == _limits(true, "optional")
}

test_guarded if {
	every guard in ["shared_token", "tokens", "mutual_tls"] {
		local := runner_bind.limits with input as _request("loopback", {guard: true}) with data.policy as _policy
		local == _limits(true, "required")
		wide := runner_bind.limits with input as _request("unspecified", {guard: true}) with data.policy as _policy
		wide == _limits(false, "required")
	}
}

test_incomplete if {
	clean := _request("loopback", {})
	paths := [
		"listener", "listener/host", "listener/port", "listener/reach", "gate", "gate/shared_token",
		"gate/tokens", "gate/mutual_tls",
	]
	every path in paths {
		not runner_bind.limits with input as json.remove(clean, [path]) with data.policy as _policy
	}
	not runner_bind.limits with input as _request("unspecified", {}) with data.policy as _policy
	not runner_bind.limits with input as _request("other", {"tokens": true}) with data.policy as _policy
}

test_values_missing if {
	not runner_bind.limits with input as _request("loopback", {}) with data.policy as {}
}
