package admission.requirements.mcp.server_test

import data.admission.requirements.mcp.server
import future.keywords.not

_policy := {
	"runners": {"mcp_transports": ["http"]},
	"mcp": {"servers": {"docs": {
		"transport": "http",
		"origin": "https://a.example.com",
		"secrets": ["API_KEY"],
		"tools": {},
	}}},
}

_server := {
	"id": "docs",
	"transport": "http",
	"starts_process": false,
	"deliverable": true,
	"url_stated": true,
	"url": {"canonical": true, "origin": "https://a.example.com", "digest": "sha256:aa"},
	"secrets": ["API_KEY"],
	"unambiguous": true,
	"confusable": false,
	"listing": "none",
}

_nothing := {"id": "x", "transport": "http", "starts_process": false, "deliverable": false, "secrets": []}

_with(change) := object.union(_server, change)

_without(path) := json.remove(_server, [path])

_phases := ["plan", "delivery", "list"]

test_supported if {
	every phase in _phases {
		server.supported(_server) with input as {"phase": phase} with data.policy as _policy
		every one in [
			_with({"starts_process": true}), _with({"transport": "stdio"}), _with({"transport": null}),
			_without("starts_process"), _without("transport"),
		] {
			not server.supported(one) with input as {"phase": phase} with data.policy as _policy
		}
		not server.supported(_server) with input as {"phase": phase} with data.policy as {}
	}
}

_relay := {"stated": true, "value": "harness"}

_started := {
	"id": "time",
	"transport": "stdio",
	"starts_process": false,
	"deliverable": false,
	"url_stated": false,
	"secrets": [],
}

_starting := {"mcp": {"servers": {}, "started": {"time": {"command": ["time"]}}, "sandboxes": ["harness"]}}

_holds(one) if {
	server.supported(one)
	server.addressed(one)
	server.admitted(one)
}

test_a_server_is_started_through_the_relay_only if {
	every phase in _phases {
		_holds(_started) with input as {"phase": phase, "relay": _relay} with data.policy as _starting
		every one in [
			{"id": "other"}, {"transport": "http"}, {"transport": null}, {"starts_process": true}, {"starts_process": null},
			{"url_stated": true}, {"url_stated": null}, {"secrets": ["API_KEY"]}, {"secrets": null}, {"secrets": {}},
		] {
			changed := object.union(_started, one)
			not _holds(changed) with input as {"phase": phase, "relay": _relay} with data.policy as _starting
		}
		every key in object.keys(json.remove(_started, ["deliverable"])) {
			changed := json.remove(_started, [key])
			not _holds(changed) with input as {"phase": phase, "relay": _relay} with data.policy as _starting
		}
		every fact in [{"stated": true, "value": "standard"}, {"stated": true}, {"stated": null, "value": "harness"}, {}] {
			not _holds(_started) with input as {"phase": phase, "relay": fact} with data.policy as _starting
		}
		every path in ["mcp/started", "mcp/started/time", "mcp/sandboxes", "mcp"] {
			policy := json.remove(_starting, [path])
			not _holds(_started) with input as {"phase": phase, "relay": _relay} with data.policy as policy
		}
	}
	every phase in ["plan", "list"] {
		not _holds(_started) with input as {"phase": phase, "relay": {"stated": false}} with data.policy as _starting
	}
}

test_nothing_to_deliver_is_left_out_at_delivery_only if {
	nothing := object.union(_nothing, {"transport": "stdio"})
	every policy in [_policy, {}] {
		server.supported(nothing) with input as {"phase": "delivery", "relay": {"stated": false}} with data.policy as policy
		server.addressed(nothing) with input as {"phase": "delivery", "relay": {"stated": false}} with data.policy as policy
		server.admitted(nothing) with input as {"phase": "delivery", "relay": {"stated": false}} with data.policy as policy
	}
	every phase in ["plan", "list", null] {
		not server.supported(nothing) with input as {"phase": phase, "relay": {"stated": false}} with data.policy as _policy
		not server.addressed(nothing) with input as {"phase": phase, "relay": {"stated": false}} with data.policy as _policy
		not server.admitted(nothing) with input as {"phase": phase, "relay": {"stated": false}} with data.policy as _policy
	}
	starting := object.union(nothing, {"starts_process": true})
	delivery := {"phase": "delivery", "relay": {"stated": false}}
	not server.supported(starting) with input as delivery with data.policy as _policy
}

test_addressed if {
	every phase in _phases {
		server.addressed(_server) with input as {"phase": phase}
		every one in [_with({"url": {"canonical": false}}), _without("url/canonical"), _without("url")] {
			not server.addressed(one) with input as {"phase": phase}
		}
	}
	unstated := _with({"url_stated": false, "url": null})
	server.addressed(unstated) with input as {"phase": "list"}
	not server.addressed(unstated) with input as {"phase": "plan"}
	not server.addressed(unstated) with input as {"phase": "delivery"}
}

test_admitted if {
	every phase in _phases {
		every one in [_server, _with({"secrets": []})] {
			server.admitted(one) with input as {"phase": phase} with data.policy as _policy
		}
		every one in [
			_with({"id": "other"}), _with({"transport": "stdio"}), _with({"url": {"origin": "https://b.example.com"}}),
			_with({"url": {"origin": null}}), _with({"secrets": ["API_KEY", "OTHER"]}), _with({"secrets": ["api_key"]}),
			_with({"secrets": {}}), _with({"secrets": null}), _without("id"), _without("transport"), _without("url"),
			_without("secrets"),
		] {
			not server.admitted(one) with input as {"phase": phase} with data.policy as _policy
		}
		every policy in [
			{}, {"mcp": {"servers": {}}}, json.remove(_policy, ["mcp/servers/docs/origin"]),
			json.remove(_policy, ["mcp/servers/docs/secrets"]), json.remove(_policy, ["mcp/servers/docs/transport"]),
		] {
			not server.admitted(_server) with input as {"phase": phase} with data.policy as policy
		}
	}
}

test_a_list_needs_no_address if {
	unstated := json.remove(_with({"url_stated": false}), ["url"])
	server.admitted(unstated) with input as {"phase": "list"} with data.policy as _policy
	not server.admitted(unstated) with input as {"phase": "plan"} with data.policy as _policy
	unknown := object.union(unstated, {"id": "other"})
	not server.admitted(unknown) with input as {"phase": "list"} with data.policy as _policy
}

test_clear if {
	server.clear(_server)
	every one in [
		_with({"unambiguous": false}), _with({"confusable": true}), _with({"unambiguous": null}),
		_without("unambiguous"), _without("confusable"),
	] {
		not server.clear(one)
	}
}

test_no_origin_is_not_that_of_a_server_without_one if {
	null_origin := json.patch(_policy, [{"op": "replace", "path": "/mcp/servers/docs/origin", "value": null}])
	lost := _with({"url": {"origin": null}})
	not server.admitted(lost) with input as {"phase": "plan"} with data.policy as null_origin
}

test_listed if {
	every phase in _phases {
		server.listed(_with({"listing": "whole"})) with input as {"phase": phase}
		every listing in ["part", "unreadable", null, ""] {
			not server.listed(_with({"listing": listing})) with input as {"phase": phase}
		}
		not server.listed(_without("listing")) with input as {"phase": phase}
	}
	server.listed(_server) with input as {"phase": "plan"}
	server.listed(_server) with input as {"phase": "delivery"}
	not server.listed(_server) with input as {"phase": "list"}
	not server.listed(_server) with input as {}
}

test_each_rule_checks_what_is_started if {
	through := {"phase": "plan", "relay": _relay}
	every change in [{"transport": "sse"}, {"transport": null}, {"starts_process": true}, {"starts_process": null}] {
		not server.supported(object.union(_started, change)) with input as through with data.policy as _starting
	}
	every change in [{"transport": "http"}, {"transport": null}, {"url_stated": true}, {"url_stated": null}] {
		not server.addressed(object.union(_started, change)) with input as through with data.policy as _starting
	}
	beside := {"phase": "plan", "relay": {"stated": false}}
	not server.addressed(_started) with input as beside with data.policy as _starting
}
