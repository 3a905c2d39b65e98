package admission.limits.environment_act_test

import data.admission.limits.environment_act
import future.keywords.not

_input := {"act": "reset", "held": {"environment": "contacts_sqlite"}}

test_limits if {
	limits := environment_act.limits with input as _input
	limits == {"environment": "contacts_sqlite", "act": "reset"}
}

test_incomplete if {
	every path in ["act", "held", "held/environment"] {
		not environment_act.limits with input as json.remove(_input, [path])
	}
	not environment_act.limits with input as {"act": null, "held": {"environment": null}}
}
