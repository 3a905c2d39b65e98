package admission.requirements.tool_call.effect_test

import data.admission.requirements.tool_call.effect
import future.keywords.not

_policy := {"tools": {"tools": {
	"read": {"side_effects": ["read", "network"], "reversal": []},
	"delete": {"side_effects": ["write", "destructive"], "reversal": ["environment_reset", "checkpoint_restore"]},
	"restorable": {"side_effects": ["destructive"], "reversal": ["checkpoint_restore"]},
	"built": {
		"side_effects": ["write", "destructive"],
		"reversal": ["held_checkpoint"],
		"environments": ["contacts_sqlite"],
	},
	"final": {"side_effects": ["destructive"], "reversal": [], "environments": ["contacts_sqlite"]},
	"empty": {"side_effects": [], "reversal": []},
	"lost": {},
}}}

_environments := {
	"none": {},
	"neither": {"environment": {"reset": false, "checkpoint": false}},
	"reset": {"environment": {"reset": true, "checkpoint": false}},
	"checkpoint": {"environment": {"reset": false, "checkpoint": true}},
	"held": {"held": {"environment": "contacts_sqlite", "reset": true, "checkpoint": true}},
	"held elsewhere": {"held": {"environment": "documents_fts", "reset": true, "checkpoint": true}},
	"held without": {"held": {"environment": "contacts_sqlite", "reset": true, "checkpoint": false}},
	"held in words": {"held": {"environment": "contacts_sqlite", "reset": true, "checkpoint": "true"}},
	"words": {"environment": {"reset": "yes", "checkpoint": 1}},
}

test_reversible if {
	found := {[tool, name] |
		some tool in ["read", "delete", "restorable", "built", "final", "empty", "lost", "unknown"]
		some name, environment in _environments
		request := object.union(environment, {"call": {"tool": tool}})
		effect.reversible with input as request with data.policy as _policy
	}
	found == {
		["read", "none"], ["read", "neither"], ["read", "reset"], ["read", "checkpoint"], ["read", "words"],
		["read", "held"], ["read", "held elsewhere"], ["read", "held without"], ["read", "held in words"],
		["built", "held"],
		["delete", "reset"], ["delete", "checkpoint"], ["restorable", "checkpoint"],
	}
}

test_missing if {
	request := {"call": {"tool": "delete"}, "environment": {"reset": true, "checkpoint": true}}
	not effect.reversible with input as json.remove(request, ["call/tool"]) with data.policy as _policy
	every policy in [{}, json.remove(_policy, ["tools/tools/delete/reversal"])] {
		not effect.reversible with input as request with data.policy as policy
	}
	not effect.reversible with input as {"call": {"tool": "read"}} with data.policy as {}
}
