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
	mcp.left_out(_nothing) with input as {"phase": "delivery", "relay": {"stated": false}}
	every phase in ["plan", "list", null, true] {
		not mcp.left_out(_nothing) with input as {"phase": phase, "relay": {"stated": false}}
	}
	not mcp.left_out(_nothing) with input as {}
	every server in [
		object.union(_nothing, {"deliverable": true}), object.union(_nothing, {"starts_process": true}),
		{"deliverable": false}, {"starts_process": false}, {},
	] {
		not mcp.left_out(server) with input as {"phase": "delivery", "relay": {"stated": false}}
	}
}

_placing := {
	"mcp": {"started": {"time": {"command": ["time"]}}, "sandboxes": ["harness"]},
	"runners": {"default_backend": "local", "backends": {"local": {"host": "runner"}, "daytona": {"host": "remote"}}},
}

_on(backend) := {"phase": "delivery", "relay": {"stated": false}, "backend": {"stated": true, "value": backend}}

test_loopback if {
	near := {"starts_process": false, "transport": "http", "url": {"origin": "http://127.0.0.1:9000"}}
	far := {"starts_process": false, "transport": "http", "url": {"origin": "https://mcp.example.com"}}
	every backend in ["local", "daytona"] {
		mcp.reachable(far) with input as _on(backend) with data.policy as _placing
		not mcp.left_out(far) with input as _on(backend) with data.policy as _placing
	}
	mcp.reachable(near) with input as _on("local") with data.policy as _placing
	not mcp.left_out(near) with input as _on("local") with data.policy as _placing
	mcp.left_out(near) with input as _on("daytona") with data.policy as _placing
	every backend in ["daytona", "other"] {
		not mcp.reachable(near) with input as _on(backend) with data.policy as _placing
	}
	not mcp.reachable(near) with input as {"phase": "delivery"} with data.policy as _placing
	not mcp.reachable({}) with input as _on("local") with data.policy as _placing
	default_backend := {"phase": "delivery", "backend": {"stated": false}}
	mcp.reachable(near) with input as default_backend with data.policy as _placing
}

test_started if {
	server := {"id": "time", "transport": "stdio", "starts_process": false, "url_stated": false}
	relay := {"relay": {"stated": true, "value": "harness"}}
	mcp.started(server) == {"command": ["time"]} with input as relay with data.policy as _placing
	mcp.admitted("time") == {"command": ["time"]} with data.policy as _placing
	not mcp.started(server) with input as {"relay": {"stated": false}} with data.policy as _placing
	not mcp.started(server) with input as {"relay": {"stated": true, "value": "other"}} with data.policy as _placing
	not mcp.started(object.union(server, {"starts_process": true})) with input as relay with data.policy as _placing
}
