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

_delivery := {
	"phase": "delivery",
	"relay": {"stated": false},
	"servers": [_server, _nothing],
	"tools": [{"id": "mcp_docs__search"}],
}

_row := {"command": ["time"], "package": {"folder": "/opt/time", "digest": "sha256:bb"}}

_policy := {
	"mcp": {
		"started": {"time": _row},
		"sandboxes": ["harness"],
		"methods": {"client": ["ping"], "server": ["notifications/progress"]},
	},
	"runners": {"backends": {"local": {"host": "runner"}, "daytona": {"host": "remote"}}},
}

_time := {"id": "time", "transport": "stdio", "starts_process": false, "deliverable": false, "url_stated": false}

_relaying := {"phase": "delivery", "relay": {"stated": true, "value": "harness"}, "servers": [_time], "tools": []}

test_started if {
	limits := mcp.limits with input as _relaying with data.policy as _policy
	limits.relay == "harness"
	limits.started == [object.union({"name": "time"}, _row)]
	limits.skipped == []
	every path in ["relay", "relay/value", "servers/0/id", "servers/0/transport", "servers/0/starts_process"] {
		not mcp.limits with input as json.remove(_relaying, [path]) with data.policy as _policy
	}
	every path in ["mcp/started/time", "mcp/started/time/command", "mcp/started/time/package", "mcp/sandboxes"] {
		policy := json.remove(_policy, [path])
		not mcp.limits with input as _relaying with data.policy as policy
	}
}

_loopback := json.patch(_server, [{"op": "replace", "path": "/url/origin", "value": "http://127.0.0.1:9000"}])

_at(backend) := {
	"phase": "delivery",
	"relay": {"stated": false},
	"backend": {"stated": true, "value": backend},
	"servers": [_loopback],
	"tools": [],
}

test_loopback_of_another_machine_is_left_out if {
	local := mcp.limits with input as _at("local") with data.policy as _policy
	[local.skipped, [one.name | some one in local.servers]] == [[], ["docs"]]
	remote := mcp.limits with input as _at("daytona") with data.policy as _policy
	[remote.skipped, remote.servers] == [["docs"], []]
	not mcp.limits with input as _at("other") with data.policy as _policy
	not mcp.limits with input as json.remove(_at("local"), ["backend"]) with data.policy as _policy
}

test_delivery if {
	limits := mcp.limits with input as _delivery with data.policy as _policy
	limits == {
		"phase": "delivery",
		"relay": "",
		"started": [],
		"servers": [{
			"name": "docs",
			"origin": "https://a.example.com",
			"address": "sha256:aa",
			"secrets": ["API_KEY"],
		}],
		"skipped": ["empty"],
		"tools": ["mcp_docs__search"],
		"client_methods": ["ping"],
		"server_methods": ["notifications/progress"],
	}
}

test_nothing_is_left_out_of_a_plan if {
	not mcp.limits with input as object.union(_delivery, {"phase": "plan"})
	plan := object.union(_delivery, {"phase": "plan", "servers": [_server]})
	limits := mcp.limits with input as plan with data.policy as _policy
	limits.skipped == []
	count(limits.servers) == 1
}

test_list_delivers_nothing if {
	limits := mcp.limits with input as object.union(_delivery, {"phase": "list"}) with data.policy as _policy
	limits == {
		"phase": "list",
		"relay": "",
		"servers": [],
		"started": [],
		"skipped": [],
		"tools": ["mcp_docs__search"],
		"client_methods": ["ping"],
		"server_methods": ["notifications/progress"],
	}
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
