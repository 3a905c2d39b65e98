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
	every phase in ["plan", "delivery"] {
		request := object.union(_on("daytona"), {"phase": phase})
		mcp.left_out(near) with input as request with data.policy as _placing
	}
	every phase in ["list", null] {
		request := object.union(_on("daytona"), {"phase": phase})
		not mcp.left_out(near) with input as request with data.policy as _placing
	}
	every other in [{"starts_process": true}, {"transport": "stdio"}] {
		not mcp.left_out(object.union(near, other)) with input as _on("daytona") with data.policy as _placing
	}
	every backend in ["daytona", "other"] {
		not mcp.reachable(near) with input as _on(backend) with data.policy as _placing
	}
	not mcp.reachable(near) with input as {"phase": "delivery"} with data.policy as _placing
	not mcp.reachable({}) with input as _on("local") with data.policy as _placing
	default_backend := {"phase": "delivery", "backend": {"stated": false}}
	mcp.reachable(near) with input as default_backend with data.policy as _placing
	not_stated := {"phase": "delivery", "backend": {"stated": false, "value": "daytona"}}
	mcp.reachable(near) with input as not_stated with data.policy as _placing
}

test_started if {
	server := {"id": "time", "transport": "stdio", "starts_process": false, "url_stated": false}
	relay := {"relay": {"stated": true, "value": "harness"}}
	mcp.started(server) == {"command": ["time"]} with input as relay with data.policy as _placing
	mcp.admitted("time") == {"command": ["time"]} with data.policy as _placing
	not mcp.started(server) with input as {"relay": {"stated": false}} with data.policy as _placing
	not mcp.started(server) with input as {"relay": {"stated": true, "value": "other"}} with data.policy as _placing
	every other in [{"starts_process": true}, {"url_stated": true}, {"url_stated": null}, {"transport": "http"}] {
		not mcp.started(object.union(server, other)) with input as relay with data.policy as _placing
	}
}
