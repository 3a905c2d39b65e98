# The one address that may be bound, and whether callers must authenticate.
package admission.limits.runner_bind

import future.keywords.not

limits := {
	"host": input.listener.host,
	"port": input.listener.port,
	"loopback": _loopback,
	"authentication": _authentication,
} if {
	is_string(input.listener.host)
	is_number(input.listener.port)
}

_loopback if input.listener.reach == "loopback"

_loopback := false if input.listener.reach in {"unspecified", "private", "shared", "link_local", "global", "name"}

_authentication := "optional" if {
	input.listener.reach in data.policy.runners.listeners.unguarded
	_unguarded
}

_authentication := "required" if _guarded

_unguarded if {
	input.gate.shared_token == false
	input.gate.tokens == false
	input.gate.mutual_tls == false
}

_guarded if input.gate.shared_token == true

_guarded if input.gate.tokens == true

_guarded if input.gate.mutual_tls == true
