package admission.requirements.mcp.relay_test

import data.admission.requirements.mcp.relay
import future.keywords.not

_policy := {
	"mcp": {"sandboxes": ["harness"]},
	"runners": {
		"default_backend": "local",
		"backends": {"local": {"host": "runner"}, "daytona": {"host": "remote"}},
	},
}

test_sandboxed if {
	every fact in [{"stated": false}, {"stated": true, "value": "harness"}] {
		relay.sandboxed with input as {"relay": fact} with data.policy as _policy
	}
	every fact in [
		{"stated": true, "value": "standard"}, {"stated": true, "value": null}, {"stated": true},
		{"stated": null, "value": "harness"}, {"value": "harness"}, {},
	] {
		not relay.sandboxed with input as {"relay": fact} with data.policy as _policy
	}
	not relay.sandboxed with input as {} with data.policy as _policy
	not relay.sandboxed with input as {"relay": {"stated": true, "value": "harness"}} with data.policy as {}
}

test_placed if {
	every fact in [{"stated": false}, {"stated": true, "value": "local"}, {"stated": true, "value": "daytona"}] {
		relay.placed with input as {"backend": fact} with data.policy as _policy
		not relay.placed with input as {"backend": fact} with data.policy as {}
	}
	every fact in [{"stated": true, "value": "other"}, {"stated": true}, {"stated": null}, {}] {
		not relay.placed with input as {"backend": fact} with data.policy as _policy
	}
	not relay.placed with input as {} with data.policy as _policy
}
