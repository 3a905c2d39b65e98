package admission.requirements.tool_call.argument_test

import data.admission.requirements.tool_call.argument
import future.keywords.not

_policy := {"tools": {
	"tools": {
		"read": {"arguments": {"path": "path"}, "secrets": false},
		"login": {"arguments": {"token": "text"}, "secrets": true},
	},
	"limits": {"arguments": {"bytes": 100, "depth": 5, "values": 10}},
}}

_call := {"tool": "read", "readable": true, "complete": true, "bytes": 100, "depth": 5, "count": 10}

_request(change) := {"call": object.union(_call, change)}

test_readable if {
	argument.readable with input as _request({})
	every value in [false, null, "yes"] {
		not argument.readable with input as _request({"readable": value})
	}
	not argument.readable with input as {}
}

test_within_ceilings if {
	argument.within_ceilings with input as _request({}) with data.policy as _policy
	every change in [
		{"complete": false}, {"complete": null}, {"bytes": 101}, {"depth": 6}, {"count": 11}, {"bytes": null},
		{"depth": "1"}, {"depth": null}, {"count": []}, {"count": null},
	] {
		not argument.within_ceilings with input as _request(change) with data.policy as _policy
	}
	every lost in ["complete", "bytes", "depth", "count"] {
		request := {"call": json.remove(_call, [lost])}
		not argument.within_ceilings with input as request with data.policy as _policy
	}
	every name in ["bytes", "depth", "values"] {
		lost := concat("/", ["tools/limits/arguments", name])
		not argument.within_ceilings with input as _request({}) with data.policy as json.remove(_policy, [lost])
	}
}

test_typed if {
	argument.typed({"id": "a", "name": "path", "type": "path"}) with input as _request({}) with data.policy as _policy
	every one in [
		{"id": "a", "name": "path"}, {"id": "a", "type": "text"}, {"id": "a", "type": null}, {"id": "a", "type": ""},
		{}, null,
	] {
		not argument.typed(one) with input as _request({}) with data.policy as _policy
	}
	not argument.typed({"type": "path"}) with input as _request({"tool": "other"}) with data.policy as _policy
	not argument.typed({"type": "path"}) with input as _request({}) with data.policy as {}
}

test_every_value_readable if {
	argument.every_value_readable with input as {"unreadable": []}
	not argument.every_value_readable with input as {}
	every unreadable in [null, {}, "", 0, [{"id": "a"}], [{}], [null]] {
		not argument.every_value_readable with input as {"unreadable": unreadable}
	}
}

test_secrets_admitted if {
	argument.secrets_admitted({"id": "a"}) with input as _request({"tool": "login"}) with data.policy as _policy
	not argument.secrets_admitted({"id": "a"}) with input as _request({}) with data.policy as _policy
	not argument.secrets_admitted({"id": "a"}) with input as _request({"tool": "other"}) with data.policy as _policy
	not argument.secrets_admitted({}) with input as _request({"tool": "login"}) with data.policy as _policy
	not argument.secrets_admitted({"id": "a"}) with input as _request({"tool": "login"}) with data.policy as {}
}
