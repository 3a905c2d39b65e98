package admission.lib.runner_test

import data.admission.lib.runner
import future.keywords.not

_policy := {"runners": {
	"backends": {"here": {"host": "runner"}, "there": {"host": "remote"}},
	"default_backend": "here",
	"tools": {"outside": {"runs_on": "client"}, "inside": {"runs_on": "sandbox"}, "beside": {"runs_on": "runner"}},
	"boundaries": {"network": {"boundary": "egress", "enforced_by": ["kernel"]}},
}}

_stated := {"sandbox": "there", "sandbox_stated": true}

_agents := {
	"stated": _stated,
	"not stated": {"sandbox_stated": false},
	"unknown": object.union(_stated, {"sandbox": "nowhere"}),
	"lost": json.remove(_stated, ["sandbox"]),
	"no word": json.remove(_stated, ["sandbox_stated"]),
	"null": {"sandbox_stated": null},
}

test_backend if {
	found := {name: backend |
		some name, agent in _agents
		backend := runner.backend(agent) with data.policy as _policy
	}
	found == {"stated": "there", "not stated": "here", "unknown": "nowhere"}
}

test_harness if {
	agents := {
		"stated": {"harness_stated": true, "harness": "own"},
		"not stated": {"harness_stated": false},
		"lost": {"harness_stated": true},
		"no word": {"harness": "own"},
		"null": {"harness_stated": null, "harness": "own"},
	}
	found := {name: harness |
		some name, agent in agents
		harness := runner.harness(agent) with data.policy.runners.default_harness as "usual"
	}
	found == {"stated": "own", "not stated": "usual"}
	not runner.harness({"harness_stated": false}) with data.policy as {}
}

test_host if {
	found := {name: host | some name, agent in _agents; host := runner.host(agent) with data.policy as _policy}
	found == {"stated": "remote", "not stated": "runner"}
}

_proof := {"backend": "there", "boundary": "egress", "kind": "kernel", "enforced": true, "run": "this"}

_here := {"backend": "here", "boundary": "egress", "kind": "kernel", "enforced": true, "evidence": "probe"}

_with(boundaries) := {"agent": _stated, "boundaries": boundaries, "content": "this"}

_changed(change) := _with([object.union(_proof, change)])

_requests := {
	"clean": _with([_proof]),
	"among others": _with([{}, _proof]),
	"no proof": _with([]),
	"another backend": _changed({"backend": "here"}),
	"another boundary": _changed({"boundary": "jail"}),
	"by agreement": _changed({"kind": "bounded"}),
	"not enforced": _changed({"enforced": false}),
	"enforced by a word": _changed({"enforced": "yes"}),
	"of another run": _changed({"run": "other"}),
	"of no run": _with([json.remove(_proof, ["run"])]),
	"by the probe of this machine": {"agent": {"sandbox_stated": false}, "boundaries": [_here]},
	"here without evidence": {"agent": {"sandbox_stated": false}, "boundaries": [json.remove(_here, ["evidence"])]},
	"of another run with evidence": _changed({"run": "other", "evidence": "probe"}),
	"of a run that is no text": object.union(_with([object.union(_proof, {"run": 5})]), {"content": 5}),
	"here without evidence, of this run": {
		"agent": {"sandbox_stated": false}, "content": "this",
		"boundaries": [object.union(json.remove(_here, ["evidence"]), {"run": "this"})],
	},
	"no run": json.remove(_with([_proof]), ["content"]),
	"no agent": json.remove(_with([_proof]), ["agent"]),
	"no boundaries": json.remove(_with([_proof]), ["boundaries"]),
}

test_proven if {
	held := {name |
		some name, request in _requests
		runner.proven(request, "network") with data.policy as _policy
	}
	held == {"clean", "among others", "by the probe of this machine"}
}

test_off_runner if {
	kinds := ["outside", "inside", "beside", "unknown", null]
	{kind | some kind in kinds; runner.off_runner(kind) with data.policy as _policy} == {"outside", "inside"}
}

test_plain_to_exactly_the_hosts_of_a_place if {
	policy := {"runners": {"uri": {"unencrypted": ["loopback"]}}}
	held := {authority |
		some authority in [
			"127.0.0.1", "127.0.0.1:80", "localhost:80", "[::1]:80", "evil.test", "evil.test:80", "127.0.0.2:80",
			"127.0.0.1.evil.test", "evil.test127.0.0.1", "127.0.0.1@evil.test",
		]

		# regal ignore:line-length
		runner.plain with input as {"uri": {"source": "override", "text": $"http://{authority}/run"}} with data.policy as policy
	}
	held == {"127.0.0.1", "127.0.0.1:80", "localhost:80", "[::1]:80"}
}

test_credentials_for_listed_runners_only if {
	policy := {"runners": {"uri": {"credentials": ["https://a.example.com"]}}}
	held := {text |
		some text in [
			"https://a.example.com", "https://a.example.com/", "https://a.example.com/agents", "https://a.example.com:1/",
			"https://a.example.com.evil.test/", "https://b.example.com/", "http://a.example.com/",
		]
		runner.credentials with input as {"uri": {"source": "override", "text": text}} with data.policy as policy
	}
	held == {"https://a.example.com", "https://a.example.com/", "https://a.example.com/agents"}
	every wrong in [{}, {"runners": {"uri": {"credentials": []}}}, {"runners": {"uri": {"credentials": null}}}] {
		none := runner.credentials with input as {"uri": {"source": "override", "text": "https://a.example.com/"}}
			with data.policy as wrong
		none == false
	}
	lost := runner.credentials with input as {} with data.policy as policy
	lost == false
}

test_values_missing if {
	every policy in [{}, {"runners": {}}, json.remove(_policy, ["runners/boundaries/network/enforced_by"])] {
		not runner.proven(_requests.clean, "network") with data.policy as policy
	}
	not runner.backend({"sandbox_stated": false}) with data.policy as {}
	not runner.host(_stated) with data.policy as {}
	not runner.boundary("network") with data.policy as {}
	not runner.off_runner("outside") with data.policy as {}
}
