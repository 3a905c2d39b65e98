package admission.lib.mcp_test

import data.admission.lib.mcp
import future.keywords.not

_policy := {"mcp": {"servers": {"docs": {"origin": "https://a.example.com", "tools": {"search": {"definition": "x"}}}}}}

test_admitted if {
	mcp.admitted({"id": "docs"}.id).origin == "https://a.example.com" with data.policy as _policy
	not mcp.admitted("other") with data.policy as _policy
	not mcp.admitted("docs") with data.policy as {}
}

test_pinned if {
	mcp.pinned({"server": "docs", "remote": "search"}) == {"definition": "x"} with data.policy as _policy
	every tool in [{"server": "docs", "remote": "other"}, {"server": "docs"}, {"remote": "search"}, {}] {
		not mcp.pinned(tool) with data.policy as _policy
	}
}

_nothing := {"deliverable": false, "starts_process": false}

test_left_out if {
	mcp.left_out(_nothing) with input as {"phase": "delivery"}
	every phase in ["plan", "list", null, true] {
		not mcp.left_out(_nothing) with input as {"phase": phase}
	}
	not mcp.left_out(_nothing) with input as {}
	every server in [
		object.union(_nothing, {"deliverable": true}), object.union(_nothing, {"starts_process": true}),
		{"deliverable": false}, {"starts_process": false}, {},
	] {
		not mcp.left_out(server) with input as {"phase": "delivery"}
	}
}
