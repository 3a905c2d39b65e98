package admission.requirements.adapter.tool_test

import data.admission.requirements.adapter.tool
import future.keywords.not

_policy := {
	"tools": {"tools": {"contacts_add": {"side_effects": ["read", "write"], "environments": ["contacts_sqlite"]}}},
	"adapters": {
		"side_effect_classes": ["read", "write"],
		"verifier_implications": {"unaffected": ["read"], "reads_state": ["read", "write"]},
	},
}

_tool := {
	"id": "contacts_add",
	"name": "contacts_add",
	"schema_digest": "sha256:aa",
	"side_effects": ["write", "read"],
	"verifier_implication": "reads_state",
	"registered": {"curated": true, "schema_digest": "sha256:aa"},
}

_without(path) := json.remove(_tool, [path])

_with(change) := object.union(_tool, change)

test_complete if {
	tool.complete(_tool)
	every path in ["schema_digest", "side_effects", "verifier_implication"] {
		not tool.complete(_without(path))
		not tool.complete(_with({path: null}))
	}
}

test_known if {
	tool.known(_tool) with data.policy as _policy
	every one in [_with({"name": "Contacts_Add"}), _with({"name": null}), _without("name"), {}] {
		not tool.known(one) with data.policy as _policy
	}
	not tool.known(_tool) with data.policy as {}
}

test_curated if {
	tool.curated(_tool)
	every value in [false, null, "true", 1] {
		not tool.curated(_with({"registered": {"curated": value}}))
	}
	not tool.curated(_without("registered/curated"))
	not tool.curated(_without("registered"))
}

test_schema_compatible if {
	tool.schema_compatible(_tool)
	every one in [
		_with({"schema_digest": "sha256:bb"}), _with({"registered": {"schema_digest": "sha256:bb"}}),
		_without("schema_digest"), _without("registered/schema_digest"), _without("registered"),
	] {
		not tool.schema_compatible(one)
	}
	nulls := _with({"schema_digest": null, "registered": {"curated": true, "schema_digest": null}})
	not tool.schema_compatible(nulls)
}

test_environment_compatible if {
	inside := {"manifest": {"environment_identity": "contacts_sqlite"}}
	tool.environment_compatible(_tool) with input as inside with data.policy as _policy
	every other in [{"manifest": {"environment_identity": "workspace"}}, {"manifest": {}}, {}] {
		not tool.environment_compatible(_tool) with input as other with data.policy as _policy
	}
	not tool.environment_compatible(_without("name")) with input as inside with data.policy as _policy
	not tool.environment_compatible(_tool) with input as inside with data.policy as {}
}

test_side_effects_compatible if {
	tool.side_effects_compatible(_tool) with data.policy as _policy
	every effects in [["read"], ["read", "write", "network"], [], null, "read"] {
		not tool.side_effects_compatible(_with({"side_effects": effects})) with data.policy as _policy
	}
	not tool.side_effects_compatible(_without("side_effects")) with data.policy as _policy
	not tool.side_effects_compatible(_tool) with data.policy as {}
}

test_side_effects_admitted if {
	tool.side_effects_admitted(_tool) with data.policy as _policy
	every effects in [["read", "network"], [null], null, "read"] {
		not tool.side_effects_admitted(_with({"side_effects": effects})) with data.policy as _policy
	}
	not tool.side_effects_admitted(_without("side_effects")) with data.policy as _policy
	every policy in [{}, {"adapters": {}}, {"adapters": {"side_effect_classes": ["read"]}}] {
		not tool.side_effects_admitted(_tool) with data.policy as policy
	}
}

test_implication_compatible if {
	tool.implication_compatible(_tool) with data.policy as _policy
	every implication in ["unaffected", "whatever", null, ["reads_state"]] {
		not tool.implication_compatible(_with({"verifier_implication": implication})) with data.policy as _policy
	}
	every path in ["verifier_implication", "side_effects"] {
		not tool.implication_compatible(_without(path)) with data.policy as _policy
	}
	not tool.implication_compatible(_tool) with data.policy as {}
}

test_lists_are_lists if {
	listed := {"read", "write"}
	every effects in [{"0": "read", "1": "write"}, listed] {
		not tool.side_effects_compatible(_with({"side_effects": effects})) with data.policy as _policy
		not tool.side_effects_admitted(_with({"side_effects": effects})) with data.policy as _policy
		not tool.implication_compatible(_with({"side_effects": effects})) with data.policy as _policy
		policy := {"tools": {"tools": {"contacts_add": {"side_effects": effects}}}}
		not tool.side_effects_compatible(_tool) with data.policy as policy
	}
	implications := {"adapters": {"verifier_implications": [["read", "write"]]}}
	not tool.implication_compatible(_with({"verifier_implication": 0})) with data.policy as implications
}
