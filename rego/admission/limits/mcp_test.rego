package admission.limits.mcp_test

import data.admission.limits.mcp
import future.keywords.not

_server := {
	"id": "docs",
	"transport": "http",
	"starts_process": false,
	"deliverable": true,
	"url": {"canonical": true, "origin": "https://a.example.com", "digest": "sha256:aa"},
	"secrets": ["API_KEY"],
}

_nothing := {"id": "empty", "transport": "stdio", "starts_process": false, "deliverable": false}

_delivery := {"phase": "delivery", "servers": [_server, _nothing], "tools": [{"id": "mcp_docs__search"}]}

test_delivery if {
	limits := mcp.limits with input as _delivery
	limits == {
		"phase": "delivery",
		"servers": [{
			"name": "docs",
			"origin": "https://a.example.com",
			"address": "sha256:aa",
			"secrets": ["API_KEY"],
		}],
		"skipped": ["empty"],
		"tools": ["mcp_docs__search"],
	}
}

test_nothing_is_left_out_of_a_plan if {
	not mcp.limits with input as object.union(_delivery, {"phase": "plan"})
	plan := object.union(_delivery, {"phase": "plan", "servers": [_server]})
	limits := mcp.limits with input as plan
	limits.skipped == []
	count(limits.servers) == 1
}

test_list_delivers_nothing if {
	limits := mcp.limits with input as object.union(_delivery, {"phase": "list"})
	limits == {"phase": "list", "servers": [], "skipped": [], "tools": ["mcp_docs__search"]}
}

test_incomplete if {
	paths := [
		"phase", "servers", "servers/0/id", "servers/0/deliverable", "servers/0/url", "servers/0/url/origin",
		"servers/0/url/digest", "servers/0/secrets", "servers/1/id", "servers/1/deliverable", "servers/1/starts_process",
		"tools", "tools/0/id",
	]
	every path in paths {
		not mcp.limits with input as json.remove(_delivery, [path])
	}
	not mcp.limits with input as object.union(_delivery, {"phase": "other"})
}
