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

test_values_missing if {
	not tool_definition.as_pinned("free", "sha256:a") with data.policy as {}
	not tool_definition.not_required("plain") with data.policy as {}
}
