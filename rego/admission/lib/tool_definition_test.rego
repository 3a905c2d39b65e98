package admission.lib.tool_definition_test

import data.admission.lib.tool_definition
import future.keywords.not

_policy := {"tools": {"tools": {
	"pinned": {"definition": "sha256:a"},
	"free": {"definition": "any"},
	"plain": {"definition": "none"},
	"lost": {},
}}}

test_as_pinned if {
	held := {[tool, digest] |
		some tool in ["pinned", "free", "plain", "lost", "unknown"]
		some digest in ["sha256:a", "sha256:b", "any", "none", null]
		tool_definition.as_pinned(tool, digest) with data.policy as _policy
	}
	held == {["pinned", "sha256:a"], ["free", "sha256:a"], ["free", "sha256:b"]}
}

test_unasked if {
	held := {tool |
		some tool in ["pinned", "free", "plain", "lost", "unknown", null]
		tool_definition.not_required(tool) with data.policy as _policy
	}
	held == {"plain"}
}

test_informs if {
	policy := {"results": {"markers": {"phrases": [], "tokens": []}}}
	tool_definition.informs({"hidden": 0, "instructions": 0}) with data.policy as policy
	not tool_definition.informs({"hidden": 0, "instructions": 0}) with data.policy as {}
	every one in [{"hidden": 1, "instructions": 0}, {"hidden": 0, "instructions": 1}, {"hidden": 0}, {"instructions": 0}] {
		not tool_definition.informs(one) with data.policy as policy
	}
}

test_values_missing if {
	not tool_definition.as_pinned("free", "sha256:a") with data.policy as {}
	not tool_definition.not_required("plain") with data.policy as {}
}
