package admission.limits.runner_request_test

import data.admission.limits.runner_request
import future.keywords.not

_policy := {"runners": {
	"default_backend": "here",
	"default_permission_policy": "deny",
	"boundaries": {"network": {"boundary": "egress"}, "filesystem": {"boundary": "jail"}},
	"calls": {"ask": {"policy": "asking", "profile": "one"}, "deny": {"policy": "denying", "profile": "one"}},
}}

_bare := {
	"agent": {
		"harness_stated": true,
		"harness": "own",
		"harness_kwargs": [],
		"model": {"stated": false},
		"sandbox_stated": false,
		"permission_policy_stated": false,
	},
	"sandbox_permission": {"network": "unrestricted", "filesystem_stated": false, "enforcement": "undeclared"},
	"tools": [],
	"mcp_servers": [],
	"attached": [],
	"endpoints": [],
}

_full := {
	"agent": {
		"harness_stated": true,
		"harness": "own",
		"harness_kwargs": [{"id": "effort"}],
		"model": {"stated": true, "id": "large"},
		"sandbox_stated": true,
		"sandbox": "there",
		"permission_policy_stated": true,
		"permission_policy": "ask",
	},
	"sandbox_permission": {
		"network": "restricted",
		"filesystem_stated": true,
		"filesystem": "off",
		"enforcement": "strict",
	},
	"tools": [{"id": "search", "kind": "gateway", "code": false}],
	"mcp_servers": [{"id": "docs", "transport": "http", "url": {"host": "a.example.com", "port": 443}}],
	"attached": [{"id": "tools/search"}, {"id": "mcp_servers/docs"}],
	"endpoints": [{"id": "trace", "origin": "https://a.example.com"}],
}

test_bare if {
	limits := runner_request.limits with input as _bare with data.policy as _policy
	limits == {
		"harness": "own",
		"harness_kwargs": [],
		"model": "",
		"sandbox": {"backend": "here", "network": "unrestricted", "filesystem": "undeclared", "proven": []},
		"permission_policy": "deny",
		"calls": {"policy": "denying", "profile": "one"},
		"tools": [],
		"mcp_servers": [],
		"endpoints": [],
	}
}

test_full if {
	limits := runner_request.limits with input as _full with data.policy as _policy
	limits == {
		"harness": "own",
		"harness_kwargs": ["effort"],
		"model": "large",
		"sandbox": {"backend": "there", "network": "restricted", "filesystem": "off", "proven": ["egress", "jail"]},
		"permission_policy": "ask",
		"calls": {"policy": "asking", "profile": "one"},
		"tools": [{"name": "search", "kind": "gateway", "permission": "ask"}],
		"mcp_servers": [{
			"name": "docs",
			"transport": "http",
			"host": "a.example.com",
			"port": 443,
			"permission": "ask",
		}],
		"endpoints": ["https://a.example.com"],
	}
}

test_incomplete if {
	paths := [
		"agent", "agent/harness_stated", "agent/harness", "agent/harness_kwargs", "agent/model", "agent/model/stated",
		"agent/model/id", "agent/sandbox_stated", "agent/sandbox", "agent/permission_policy_stated",
		"agent/permission_policy", "sandbox_permission", "sandbox_permission/network",
		"sandbox_permission/filesystem_stated", "sandbox_permission/filesystem", "tools", "tools/0/id",
		"tools/0/kind", "mcp_servers", "mcp_servers/0/id", "mcp_servers/0/transport", "mcp_servers/0/url/host",
		"mcp_servers/0/url/port", "attached", "endpoints", "endpoints/0/origin",
	]
	every path in paths {
		not runner_request.limits with input as json.remove(_full, [path]) with data.policy as _policy
	}
	not runner_request.limits with input as object.union(_full, {"attached": []}) with data.policy as _policy
}

test_values_missing if {
	every request in [_bare, _full] {
		not runner_request.limits with input as request with data.policy as {}
	}
}

test_a_started_server_has_no_address if {
	servers := [{"id": "time", "transport": "stdio"}]
	run := object.union(_bare, {"mcp_servers": servers, "attached": [{"id": "mcp_servers/time"}]})
	policy := object.union(_policy, {"mcp": {"started": {"time": {"command": ["time"]}}}})
	limits := runner_request.limits with input as run with data.policy as policy
	limits.mcp_servers == [{"name": "time", "transport": "stdio", "permission": "deny"}]
	not runner_request.limits with input as run with data.policy as _policy
	not runner_request.limits with input as json.remove(run, ["mcp_servers/0/transport"]) with data.policy as policy
}
