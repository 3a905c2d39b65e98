package admission.requirements.environment_act.act_test

import data.admission.requirements.environment_act.act
import future.keywords.not

_held := {"environment": "contacts_sqlite", "reset": true, "checkpoint": false, "restorable": true}

_policy := {"environments": {"environments": {"contacts_sqlite": {"acts": ["checkpoint", "restore"]}}}}

test_held if {
	act.held with input as {"held": _held}
	every facts in [{}, {"held": null}, {"held": {}}, {"held": {"environment": null}}] {
		not act.held with input as facts
	}
}

test_act_admitted if {
	admitted := {word |
		some word in ["checkpoint", "restore", "reset"]
		act.act_admitted with input as {"act": word, "held": _held} with data.policy as _policy
	}
	admitted == {"checkpoint", "restore"}
	every facts in [{}, {"act": "restore"}, {"held": _held}, {"act": null, "held": _held}] {
		not act.act_admitted with input as facts with data.policy as _policy
	}
	other := {"act": "restore", "held": {"environment": "documents_fts"}}
	not act.act_admitted with input as other with data.policy as _policy
	not act.act_admitted with input as {"act": "restore", "held": _held} with data.policy as {}
}

test_state_held if {
	every word in ["checkpoint", "restore", "reset"] {
		act.state_held with input as {"act": word, "checkpoint": "checkpoint-1.sqlite", "held": _held}
	}
	act.state_held with input as {"act": "checkpoint", "held": {}}
	every facts in [
		{"act": "restore", "held": _held},
		{"act": "restore", "checkpoint": null, "held": _held},
		{"act": "restore", "checkpoint": "a", "held": object.union(_held, {"restorable": false})},
		{"act": "restore", "checkpoint": "a", "held": object.union(_held, {"restorable": "true"})},
		{"act": "restore", "checkpoint": "a", "held": json.remove(_held, ["restorable"])},
		{"act": "restore", "checkpoint": "a"},
		{"act": "reset", "held": object.union(_held, {"reset": false})},
		{"act": "reset", "held": json.remove(_held, ["reset"])},
		{"act": "reset"},
		{"act": "delete", "checkpoint": "a", "held": _held},
		{},
	] {
		not act.state_held with input as facts
	}
}
