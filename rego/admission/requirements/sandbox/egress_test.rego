package admission.requirements.sandbox.egress_test

import data.admission.lib.sandbox_test
import data.admission.requirements.sandbox.egress
import future.keywords.not

_policy := sandbox_test.policy

_off := {"sandbox": object.union(_policy.sandbox, {"backends": {"jail": {"egress": false}}})}

test_provided if {
	egress.provided with input as {"profile": "here", "egress": true} with data.policy as _policy
	every policy in [_policy, _off, {}] {
		egress.provided with input as {"profile": "here", "egress": false} with data.policy as policy
	}
	every request in [
		{"profile": "nowhere", "egress": true}, {"profile": null, "egress": true}, {"egress": true}, {"profile": "here"},
		{"profile": "here", "egress": null}, {"profile": "here", "egress": "true"}, {},
	] {
		not egress.provided with input as request with data.policy as _policy
	}
	every policy in [_off, {}] {
		not egress.provided with input as {"profile": "here", "egress": true} with data.policy as policy
	}
}
