package admission.requirements.mcp.definition_test

import data.admission.requirements.mcp.definition
import future.keywords.not

_policy := {
	"tools": {"tools": {
		"mcp_docs__search": {"side_effects": ["read"]},
		"mcp_docs__change": {"side_effects": ["write", "network"]},
		"mcp_docs__drop": {"side_effects": ["network", "destructive"]},
	}},
	"mcp": {"servers": {"docs": {"tools": {"search": {"definition": "sha256:aa"}}}}},
}

_tool := {
	"id": "mcp_docs__search",
	"server": "docs",
	"remote": "search",
	"definition": "sha256:aa",
	"hints": {"read_only": true, "destructive": true, "open_world": false},
}

_worst := {"read_only": false, "destructive": true, "open_world": true}

_with(change) := object.union(_tool, change)

_without(path) := json.remove(_tool, [path])

test_informs if {
	policy := {"results": {"markers": {"phrases": [], "tokens": []}}}
	plain := _with({"hidden": 0, "instructions": 0})
	definition.informs(plain) with data.policy as policy
	not definition.informs(plain) with data.policy as {}
	every change in [{"hidden": 1}, {"instructions": 1}, {"hidden": null}, {"instructions": null}] {
		not definition.informs(object.union(plain, change)) with data.policy as policy
	}
	every name in ["hidden", "instructions"] {
		not definition.informs(json.remove(plain, [name])) with data.policy as policy
	}
}

test_known if {
	definition.known(_tool) with data.policy as _policy
	every one in [_with({"id": "mcp_docs__Search"}), _without("id")] {
		not definition.known(one) with data.policy as _policy
	}
	not definition.known(_tool) with data.policy as {}
}

_without_pin := json.remove(_policy, ["mcp/servers/docs/tools/search/definition"])

test_pinned if {
	definition.pinned(_tool) with data.policy as _policy
	every one in [_with({"server": "other"}), _with({"remote": "other"}), _without("server"), _without("remote")] {
		not definition.pinned(one) with data.policy as _policy
	}
	not definition.pinned(_tool) with data.policy as {}
	not definition.pinned(_tool) with data.policy as _without_pin
}

test_unchanged if {
	definition.unchanged(_tool) with data.policy as _policy
	every one in [
		_with({"definition": "sha256:bb"}), _with({"definition": null}),
		_without("definition"), _without("remote"),
	] {
		not definition.unchanged(one) with data.policy as _policy
	}
	not definition.unchanged(_tool) with data.policy as _without_pin

	# regal ignore:line-length
	null_pin := json.patch(_policy, [{"op": "replace", "path": "/mcp/servers/docs/tools/search/definition", "value": null}])
	not definition.unchanged(_with({"definition": null})) with data.policy as null_pin
	not definition.unchanged(_without("definition")) with data.policy as _without_pin
}

_mild := {"read_only": true, "destructive": false, "open_world": false}

_writing := {"read_only": false, "destructive": false, "open_world": false}

test_hints_within if {
	within := {[name, key] |
		some name in ["search", "change", "drop"]
		some key, hints in {"mild": _mild, "writing": _writing, "worst": _worst, "reads the world": _with_world}
		definition.hints_within({"id": $"mcp_docs__{name}", "hints": hints}) with data.policy as _policy
	}
	within == {
		["search", "mild"], ["change", "mild"], ["drop", "mild"],
		["change", "writing"], ["drop", "writing"], ["drop", "worst"],
		["change", "reads the world"], ["drop", "reads the world"],
	}
}

test_a_server_that_states_no_hints_claims_nothing if {
	silent := object.union(_worst, {"stated": false})
	every name in ["search", "change", "drop"] {
		definition.hints_within({"id": $"mcp_docs__{name}", "hints": silent}) with data.policy as _policy
	}
	every policy in [{}, json.remove(_policy, ["tools/tools/mcp_docs__search/side_effects"])] {
		not definition.hints_within({"id": "mcp_docs__search", "hints": silent}) with data.policy as policy
	}
	every stated in [true, null, "false", 0] {
		hints := object.union(_worst, {"stated": stated})
		not definition.hints_within({"id": "mcp_docs__search", "hints": hints}) with data.policy as _policy
	}
}

_with_world := {"read_only": true, "destructive": true, "open_world": true}

test_hints_missing if {
	every path in ["id", "hints", "hints/read_only", "hints/open_world"] {
		not definition.hints_within(json.remove(_tool, [path])) with data.policy as _policy
	}
	writing := {"id": "mcp_docs__drop", "hints": _worst}
	definition.hints_within(writing) with data.policy as _policy
	every path in ["hints/read_only", "hints/destructive", "hints/open_world"] {
		not definition.hints_within(json.remove(writing, [path])) with data.policy as _policy
	}
	every policy in [{}, json.remove(_policy, ["tools/tools/mcp_docs__search/side_effects"])] {
		not definition.hints_within(_tool) with data.policy as policy
	}
}
