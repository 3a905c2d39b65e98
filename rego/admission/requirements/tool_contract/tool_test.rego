package admission.requirements.tool_contract.tool_test

import data.admission.requirements.tool_contract.tool
import future.keywords.not

_policy := {"tools": {"tools": {
	"files_write": {
		"side_effects": ["read", "write"],
		"arguments": {"path": "path", "text": "text"},
		"environments": ["workspace"],
		"curated": ["sha256:aa"],
		"definition": "sha256:dd",
	},
	"other": {
		"side_effects": ["none"],
		"arguments": {},
		"environments": ["workspace"],
		"curated": [],
		"definition": "any",
	},
}}}

_tool := {
	"id": "files_write",
	"name": "files_write",
	"definition": {"digest": "sha256:dd", "content": "sha256:cc", "arguments": ["path", "text"]},
	"implementation": {"local": true, "digest": "sha256:aa"},
	"environment": "workspace",
	"side_effects": ["write", "read"],
}

_with(change) := object.union(_tool, change)

_without(path) := json.remove(_tool, [path])

test_known if {
	tool.known(_tool) with data.policy as _policy
	every one in [_with({"name": "Files_Write"}), _with({"name": null}), _without("name"), {}] {
		not tool.known(one) with data.policy as _policy
	}
	not tool.known(_tool) with data.policy as {}
}

test_local if {
	tool.local(_tool)
	every value in [false, null, "true", 1] {
		not tool.local(_with({"implementation": {"local": value}}))
	}
	not tool.local(_without("implementation/local"))
	not tool.local(_without("implementation"))
}

test_curated if {
	tool.curated(_tool) with data.policy as _policy
	every one in [
		_with({"implementation": {"digest": "sha256:bb"}}), _with({"implementation": {"digest": null}}),
		_with({"name": "other"}), _with({"name": "unknown"}), _without("implementation/digest"), _without("name"),
	] {
		not tool.curated(one) with data.policy as _policy
	}
	not tool.curated(_tool) with data.policy as {}
}

test_schema_compatible if {
	every arguments in [["path", "text"], ["path"], []] {
		one := _with({"definition": {"arguments": arguments}})
		tool.schema_compatible(one) with data.policy as _policy
	}
	every arguments in [["path", "mode"], [null], {}, "path", null, true] {
		one := _with({"definition": {"arguments": arguments}})
		not tool.schema_compatible(one) with data.policy as _policy
	}
	every path in ["definition", "definition/arguments", "name"] {
		not tool.schema_compatible(_without(path)) with data.policy as _policy
	}
	not tool.schema_compatible(_tool) with data.policy as {}
}

test_definition_pinned if {
	tool.definition_pinned(_tool) with data.policy as _policy
	tool.definition_pinned(_with({"name": "other"})) with data.policy as _policy
	none := json.patch(_policy, [{"op": "replace", "path": "/tools/tools/other/definition", "value": "none"}])
	tool.definition_pinned(_with({"name": "other"})) with data.policy as none
	every one in [
		_with({"definition": {"digest": "sha256:ee"}}), _with({"definition": {"digest": null}}),
		_without("definition/digest"), _without("definition"), _without("name"), _with({"name": "unknown"}),
	] {
		not tool.definition_pinned(one) with data.policy as _policy
	}
	not tool.definition_pinned(_with({"name": "other", "definition": {"digest": null}})) with data.policy as _policy
	unpinned := json.patch(_policy, [{"op": "replace", "path": "/tools/tools/files_write/definition", "value": null}])
	not tool.definition_pinned(_with({"definition": {"digest": null}})) with data.policy as unpinned
	not tool.definition_pinned(_tool) with data.policy as {}
}

test_side_effects_compatible if {
	tool.side_effects_compatible(_tool) with data.policy as _policy
	every effects in [["read"], ["read", "write", "network"], [], ["read", "write", "write"], {}, "read", null] {
		not tool.side_effects_compatible(_with({"side_effects": effects})) with data.policy as _policy
	}
	not tool.side_effects_compatible(_without("side_effects")) with data.policy as _policy
	not tool.side_effects_compatible(_tool) with data.policy as {}
}

test_environment_compatible if {
	tool.environment_compatible(_tool) with data.policy as _policy
	every environment in ["production", null, ["workspace"], ""] {
		not tool.environment_compatible(_with({"environment": environment})) with data.policy as _policy
	}
	not tool.environment_compatible(_without("environment")) with data.policy as _policy
	not tool.environment_compatible(_tool) with data.policy as {}
}
