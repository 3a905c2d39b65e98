package admission.requirements.runner_request.delivery_test

import data.admission.requirements.runner_request.delivery
import future.keywords.not

_policy := {
	"runners": {
		"harnesses": {"own": {"custom_tools": "native"}, "other": {"custom_tools": "mcp"}},
		"tool_delivery": ["native"],
		"mcp_transports": ["http"],
		"endpoints": ["https://gateway.example.com"],
	},
	"mcp": {"started": {"time": {"command": ["time"]}}},
	"networks": {"schemes": ["https"], "ports": [443]},
}

_attached := {
	"tool": {"id": "tools/a", "kind": "tool"},
	"http": {"id": "mcp_servers/a", "kind": "mcp_server", "transport": "http", "starts_process": false},
	"stdio": {"id": "mcp_servers/a", "kind": "mcp_server", "transport": "stdio", "starts_process": true},
	"started by the runner": {
		"id": "mcp_servers/time",
		"kind": "mcp_server",
		"transport": "stdio",
		"starts_process": false,
	},
	"stdio of the policy with a command": {
		"id": "mcp_servers/time",
		"kind": "mcp_server",
		"transport": "stdio",
		"starts_process": true,
	},
	"another transport": {"id": "mcp_servers/time", "kind": "mcp_server", "transport": "sse", "starts_process": false},
	"another kind": {"id": "mcp_servers/time", "kind": "other", "transport": "stdio", "starts_process": false},
	"stdio of no policy": {
		"id": "mcp_servers/other",
		"kind": "mcp_server",
		"transport": "stdio",
		"starts_process": false,
	},
	"stdio without a command": {"kind": "mcp_server", "transport": "stdio", "starts_process": false},
	"http with a command": {"kind": "mcp_server", "transport": "http", "starts_process": true},
	"no transport": {"kind": "mcp_server", "starts_process": false},
	"no word on a process": {"kind": "mcp_server", "transport": "http"},
	"no kind": {"transport": "http", "starts_process": false},
	"kind is null": {"kind": null, "transport": "http", "starts_process": false},
}

_run(harness) := {"agent": {"harness_stated": true, "harness": harness}}

test_delivered if {
	held := {name |
		some name, item in _attached
		delivery.delivered(item) with input as _run("own") with data.policy as _policy
	}
	held == {"tool", "http", "started by the runner"}
}

test_named_once if {
	items := [{"occurrences": 1}, {"occurrences": 2}, {"occurrences": null}, {"occurrences": true}, {}]
	{at | some at, item in items; delivery.named_once(item)} == {0}
}

test_delivered_to_a_harness_without_own_tools if {
	every run in [_run("other"), _run("unknown"), _run(null), {}] {
		held := {name |
			some name, item in _attached
			delivery.delivered(item) with input as run with data.policy as _policy
		}
		held == {"http", "started by the runner"}
	}
}

_server := {"transport": "http", "url": {"canonical": true, "scheme": "https", "host": "a.example.com", "port": 443}}

_servers := {
	"clean": _server,
	"stdio": {"transport": "stdio"},
	"no transport": json.remove(_server, ["transport"]),
	"no url": json.remove(_server, ["url"]),
	"not canonical": object.union(_server, {"url": {"canonical": false}}),
	"no word on canonical": json.remove(_server, ["url/canonical"]),
	"other scheme": object.union(_server, {"url": {"scheme": "http"}}),
	"no scheme": json.remove(_server, ["url/scheme"]),
	"other port": object.union(_server, {"url": {"port": 8443}}),
	"no port": json.remove(_server, ["url/port"]),
}

test_addressed if {
	held := {name | some name, server in _servers; delivery.addressed(server) with data.policy as _policy}
	held == {"clean", "stdio"}
}

test_secret_form_admitted if {
	secrets := {
		"plain": {"id": "trace", "sealed": false},
		"sealed": {"id": "trace", "sealed": true},
		"a word": {"id": "trace", "sealed": "yes"},
		"null": {"id": "trace", "sealed": null},
		"no word": {"id": "trace"},
	}
	every admitted in [["plain", "sealed"], ["plain"], ["sealed"], []] {
		held := {name |
			some name, secret in secrets
			delivery.secret_form_admitted(secret) with data.policy.runners.payload_secrets as admitted
		}
		held == {one | some one in admitted}
	}
	not delivery.secret_form_admitted(secrets.plain) with data.policy as {}
}

_endpoint := {"id": "trace", "canonical": true, "origin": "https://gateway.example.com"}

_endpoints := {
	"clean": _endpoint,
	"other origin": object.union(_endpoint, {"origin": "https://gateway.example.com.evil.org"}),
	"not canonical": object.union(_endpoint, {"canonical": false}),
	"no word on canonical": json.remove(_endpoint, ["canonical"]),
	"no origin": json.remove(_endpoint, ["origin"]),
}

test_endpoint_allowlisted if {
	held := {name | some name, item in _endpoints; delivery.endpoint_allowlisted(item) with data.policy as _policy}
	held == {"clean"}
}

test_values_missing if {
	every item in [_attached.tool, _attached.http, _attached["started by the runner"]] {
		not delivery.delivered(item) with input as _run("own") with data.policy as {}
	}
	not delivery.addressed(_server) with data.policy as {}
	not delivery.endpoint_allowlisted(_endpoint) with data.policy as {}
}
