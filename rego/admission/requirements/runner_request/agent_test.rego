package admission.requirements.runner_request.agent_test

import data.admission.requirements.runner_request.agent
import future.keywords.not

_policy := {"runners": {
	"harnesses": {"known": {"custom_tools": "native", "kwargs": ["effort"]}},
	"default_harness": "known",
	"backends": {"here": {"host": "runner"}, "there": {"host": "remote"}},
	"default_backend": "here",
	"uri": {"allowlist": ["https://runner.example.com"]},
}}

_agent := {
	"harness_stated": true,
	"harness": "known",
	"sandbox_stated": true,
	"sandbox": "there",
	"uri": {"stated": true, "canonical": true, "origin": "https://runner.example.com"},
}

_with(change) := {"agent": object.union(_agent, change)}

_without(field) := {"agent": json.remove(_agent, [field])}

_requests := {
	"clean": {"agent": _agent},
	"default backend": _with({"sandbox_stated": false}),
	"other harness": _with({"harness": "other"}),
	"harness is null": _with({"harness": null}),
	"no harness": _without("harness"),
	"default harness": {"agent": object.union(json.remove(_agent, ["harness"]), {"harness_stated": false})},
	"no word on the harness": _without("harness_stated"),
	"other backend": _with({"sandbox": "inside"}),
	"no backend": _without("sandbox"),
	"no word on the backend": _without("sandbox_stated"),
	"no address": _with({"uri": {"stated": false}}),
	"other address": _with({"uri": {"origin": "https://runner.example.org"}}),
	"not canonical": _with({"uri": {"canonical": false}}),
	"no word on canonical": _without("uri/canonical"),
	"no origin": _without("uri/origin"),
	"no word on the address": _without("uri/stated"),
	"no facts of the address": _without("uri"),
	"no agent": {},
}

test_harness_admitted if {
	held := {name |
		some name, request in _requests
		agent.harness_admitted with input as request with data.policy as _policy
	}
	held == object.keys(_requests) - {
		"other harness", "harness is null", "no harness", "no word on the harness", "no agent",
	}
}

test_kwarg_admitted if {
	held := {name |
		some name, request in _requests
		agent.kwarg_admitted({"id": "effort"}) with input as request with data.policy as _policy
	}
	held == object.keys(_requests) - {
		"other harness", "harness is null", "no harness", "no word on the harness", "no agent",
	}
	every kwarg in [{"id": "other"}, {"id": null}, {"id": ["effort"]}, {}, null] {
		not agent.kwarg_admitted(kwarg) with input as _requests.clean with data.policy as _policy
	}
}

test_backend_admitted if {
	held := {name |
		some name, request in _requests
		agent.backend_admitted with input as request with data.policy as _policy
	}
	held == object.keys(_requests) - {"other backend", "no backend", "no word on the backend", "no agent"}
}

test_uri_allowlisted if {
	held := {name |
		some name, request in _requests
		agent.uri_allowlisted with input as request with data.policy as _policy
	}
	refused := {
		"other address", "not canonical", "no word on canonical", "no origin", "no word on the address",
		"no facts of the address", "no agent",
	}
	held == object.keys(_requests) - refused
}

test_values_missing if {
	every policy in [{}, {"runners": {}}, {"runners": {"uri": {"allowlist": []}, "harnesses": {}, "backends": {}}}] {
		not agent.harness_admitted with input as _requests.clean with data.policy as policy
		not agent.kwarg_admitted({"id": "effort"}) with input as _requests.clean with data.policy as policy
		not agent.backend_admitted with input as _requests.clean with data.policy as policy
		not agent.uri_allowlisted with input as _requests.clean with data.policy as policy
	}
	without_default := json.remove(_policy, ["runners/default_backend"])
	not agent.backend_admitted with input as _requests["default backend"] with data.policy as without_default
}

test_model_listed if {
	listing := {"runners": {"harnesses": {"known": {"models": {"one": ["large", "small"], "other": ["small"]}}}}}
	models := {
		"stated": {"stated": true, "id": "large", "provider_stated": true, "provider": "one"},
		"without provider": {"stated": true, "id": "large", "provider_stated": false},
		"none": {"stated": false},
		"of another provider": {"stated": true, "id": "large", "provider_stated": true, "provider": "other"},
		"of no provider": {"stated": true, "id": "large", "provider_stated": true},
		"no word on the provider": {"stated": true, "id": "large", "provider": "one"},
		"not listed": {"stated": true, "id": "huge", "provider_stated": false},
		"without id": {"stated": true, "provider_stated": false},
		"no word": {"id": "large", "provider_stated": false},
	}
	held := {name |
		some name, model in models
		agent.model_listed with input as _with({"model": model}) with data.policy as listing
	}
	held == {"stated", "without provider", "none"}
	nameless := {"runners": {"harnesses": {"known": {"models": [["large"]]}}}}
	not agent.model_listed with input as _with({"model": models["without provider"]}) with data.policy as nameless
	not agent.model_listed with input as _with({"model": models.stated}) with data.policy as {"runners": {}}
}

test_mode_offered if {
	offering := {"runners": {"harnesses": {"known": {"connection_modes": ["shared"]}}}}
	modes := {
		"offered": {"mode_stated": true, "mode": "shared"},
		"none": {"mode_stated": false},
		"not offered": {"mode_stated": true, "mode": "own"},
		"without a word": {"mode_stated": true},
		"no word": {"mode": "shared"},
	}
	held := {name |
		some name, model in modes
		agent.mode_offered with input as _with({"model": model}) with data.policy as offering
	}
	held == {"offered", "none"}
	not agent.mode_offered with input as _with({"model": modes.offered}) with data.policy as {"runners": {}}
	not agent.mode_offered with input as {} with data.policy as offering
}

test_connection_provided if {
	slugs := {
		"of a provider": {"slug_stated": true, "provider_stated": true},
		"none": {"slug_stated": false, "provider_stated": false},
		"of no provider": {"slug_stated": true, "provider_stated": false},
		"no word on the provider": {"slug_stated": true},
		"no word": {"provider_stated": true},
	}
	held := {name |
		some name, model in slugs
		agent.connection_provided with input as _with({"model": model})
	}
	held == {"of a provider", "none"}
	not agent.connection_provided with input as {}
}
