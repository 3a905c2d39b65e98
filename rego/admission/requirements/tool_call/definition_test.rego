package admission.requirements.tool_call.definition_test

import data.admission.requirements.tool_call.definition
import future.keywords.not

_policy := {"tools": {"tools": {
	"pinned": {"definition": "sha256:a"},
	"free": {"definition": "any"},
	"plain": {"definition": "none"},
}}}

_definitions := {
	"as pinned": {"definition": {"digest": "sha256:a", "schema_valid": true}, "misfits": []},
	"another": {"definition": {"digest": "sha256:b", "schema_valid": true}, "misfits": []},
	"unfit": {"definition": {"digest": "sha256:a", "schema_valid": true}, "misfits": [{"id": "arguments/path"}]},
	"no schema": {"definition": {"digest": "sha256:a", "schema_valid": false}, "misfits": [{"id": "arguments"}]},
	"facts missing": {"definition": {"digest": "sha256:a"}},
	"digest missing": {"definition": {"schema_valid": true}, "misfits": []},
	"none": {"misfits": []},
}

test_as_pinned if {
	found := {[tool, name] |
		some tool in ["pinned", "free", "unknown"]
		some name, request in _definitions
		called := object.union(request, {"call": {"tool": tool}})
		definition.as_pinned with input as called with data.policy as _policy
	}
	found == {
		["pinned", "as pinned"], ["pinned", "unfit"], ["pinned", "no schema"], ["pinned", "facts missing"],
		["free", "as pinned"], ["free", "another"], ["free", "unfit"], ["free", "no schema"], ["free", "facts missing"],
	}
}

_markers := object.union(_policy, {"results": {"markers": {"phrases": [], "tokens": []}}})

test_informing if {
	plain := {"hidden": 0, "instructions": 0}
	informing := {name |
		some name, stated in {
			"plain": plain,
			"hidden": {"hidden": 1, "instructions": 0},
			"instructions": {"hidden": 0, "instructions": 2},
			"null": {"hidden": null, "instructions": null},
			"nothing said": {},
		}
		called := {"call": {"tool": "free"}, "definition": stated}
		definition.informing with input as called with data.policy as _markers
	}
	informing == {"plain"}
	not definition.informing with input as {"call": {"tool": "free"}} with data.policy as _markers
	not definition.informing with input as {"call": {"tool": "free"}, "definition": plain} with data.policy as _policy
	definition.informing with input as {"call": {"tool": "plain"}} with data.policy as _policy
}

test_fitting if {
	found := {name |
		some name, request in _definitions
		called := object.union(request, {"call": {"tool": "pinned"}})
		definition.fitting with input as called with data.policy as _policy
	}
	found == {"as pinned", "another", "digest missing", "none"}
}

test_readable if {
	found := {name |
		some name, request in _definitions
		called := object.union(request, {"call": {"tool": "pinned"}})
		definition.readable with input as called with data.policy as _policy
	}
	found == {"as pinned", "another", "unfit", "digest missing"}
}

test_no_definition_is_asked_for if {
	every request in _definitions {
		called := object.union(request, {"call": {"tool": "plain"}})
		definition.as_pinned with input as called with data.policy as _policy
		definition.readable with input as called with data.policy as _policy
	}
	unfit := object.union(_definitions.unfit, {"call": {"tool": "plain"}})
	definition.fitting with input as unfit with data.policy as _policy
	not definition.fitting with input as {"call": {"tool": "plain"}} with data.policy as _policy
}

test_values_missing if {
	called := object.union(_definitions["as pinned"], {"call": {"tool": "pinned"}})
	not definition.as_pinned with input as called with data.policy as {}
	not definition.fitting with input as {"call": {"tool": "plain"}} with data.policy as {}
	not definition.as_pinned with input as {"call": {"tool": "plain"}} with data.policy as {}
}
