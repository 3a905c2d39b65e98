package admission.limits.tool_contract_test

import data.admission.limits.tool_contract
import future.keywords.not

_proposal := {
	"kind": "proposal",
	"proposals": [{"id": "a", "role": "designer", "complete": true, "content": "sha256:cc"}],
	"detected": {},
	"tools": [],
}

_tool := {
	"kind": "tool",
	"proposals": [],
	"detected": {},
	"tools": [{
		"id": "a",
		"name": "a",
		"definition": {"digest": "sha256:dd", "content": "sha256:cc", "arguments": []},
		"implementation": {"local": true, "digest": "sha256:aa"},
		"environment": "workspace",
		"side_effects": ["read"],
	}],
}

test_proposal_registers_nothing if {
	limits := tool_contract.limits with input as _proposal
	limits == {"registers": false}
}

test_tool if {
	limits := tool_contract.limits with input as _tool
	limits == {
		"registers": true,
		"name": "a",
		"definition": "sha256:cc",
		"implementation": "sha256:aa",
		"side_effects": ["read"],
		"environment": "workspace",
	}
}

test_incomplete if {
	every path in ["kind", "proposals", "proposals/0/content"] {
		not tool_contract.limits with input as json.remove(_proposal, [path])
	}
	paths := [
		"kind", "tools", "tools/0/name", "tools/0/definition/content", "tools/0/implementation/digest",
		"tools/0/environment", "tools/0/side_effects",
	]
	every path in paths {
		not tool_contract.limits with input as json.remove(_tool, [path])
	}
}

test_not_exactly_one if {
	every kind in ["proposal", "tool"] {
		both := {"kind": kind, "proposals": array.concat(_proposal.proposals, _proposal.proposals), "tools": []}
		not tool_contract.limits with input as both
	}
	two := object.union(_tool, {"tools": array.concat(_tool.tools, _tool.tools)})
	not tool_contract.limits with input as two
}
