package admission.requirements.episode.start_test

import data.admission.requirements.episode.start
import future.keywords.not

_policy := {
	"episodes": {"max_agents": 2, "roles": {"Actor": {"replies": "proposal"}, "external": {"replies": "text"}}},
	"budgets": {"quotas": {"episode": {"tokens": {"limit": 100}}}},
}

_start := {
	"event": {"kind": "start"},
	"actors": [{"id": "a", "role": "Actor"}],
	"history": [],
	"running": [],
	"ended": false,
	"broken": false,
	"quotas": [{"id": "tokens", "used": 40, "amount": 60}],
}

_with(change) := object.union(_start, change)

_accepted := {
	"turn": 1, "attempt": 1, "actor": "a", "outcome": "accepted", "resolution": false, "abort": false,
}

_requests := {
	"start": _start,
	"turn": _with({"event": {"kind": "turn"}, "history": [_accepted]}),
	"end": _with({"event": {"kind": "end"}, "history": [_accepted]}),
	"turn after resolution": _with({
		"event": {"kind": "turn"},
		"history": [object.union(_accepted, {"resolution": true})],
	}),
	"turn after abort": _with({"event": {"kind": "turn"}, "history": [object.union(_accepted, {"abort": true})]}),
	"turn without history": json.remove(_with({"event": {"kind": "turn"}}), ["history"]),
	"ended": _with({"ended": true}),
	"turn after the end": _with({"event": {"kind": "turn"}, "ended": true}),
	"no word on the end": json.remove(_start, ["ended"]),
	"no word on what is lost": json.remove(_start, ["broken"]),
	"turn, no word on what is lost": json.remove(_with({"event": {"kind": "turn"}}), ["broken"]),
	"history": _with({"history": [_accepted]}),
	"running": _with({"running": [_accepted]}),
	"no lists": json.remove(_start, ["history", "running"]),
	"no quota": _with({"quotas": []}),
	"quota used up": _with({"quotas": [{"id": "tokens", "used": 41, "amount": 60}]}),
	"other quota": _with({"quotas": [{"id": "spend", "used": 0, "amount": 0}]}),
	"quota without amount": _with({"quotas": [{"id": "tokens", "used": 41}]}),
	"no event": json.remove(_start, ["event"]),
}

test_few_actors if {
	start.few_actors with input as _start with data.policy as _policy
	every actors in [
		[], null, {}, [{"id": "a"}, {"id": "a"}], [{"id": "a"}, {"id": "b"}, {"id": "c"}], [{"id": "a"}, {}],
		[{"id": "a"}, {"id": ""}],
	] {
		not start.few_actors with input as _with({"actors": actors}) with data.policy as _policy
	}
	not start.few_actors with input as {} with data.policy as _policy
	not start.few_actors with input as _start with data.policy as {}
}

test_role_known if {
	start.role_known({"id": "a", "role": "Actor"}) with data.policy as _policy
	every actor in [{"id": "a", "role": "external"}, {"id": "a", "role": "x"}, {"id": "a"}, {"role": "Actor"}, {}] {
		not start.role_known(actor) with data.policy as _policy
	}
	not start.role_known({"id": "a", "role": "Actor"}) with data.policy as {}
}

test_state_owned if {
	start.state_owned({"id": "g", "owner": "a", "values": {}}) with input as _start
	every group in [
		{"id": "g", "owner": "b", "values": {}}, {"id": "g", "owner": "a"}, {"owner": "a", "values": {}},
		{"id": "g", "values": {}}, {},
	] {
		not start.state_owned(group) with input as _start
	}
	not start.state_owned({"id": "g", "owner": "a", "values": {}}) with input as {}
}

test_goes_on if {
	held := {name | some name, one in _requests; start.goes_on with input as one with data.policy as _policy}
	held == object.keys(_requests) - {
		"turn after resolution", "turn after abort", "turn without history", "ended", "turn after the end",
		"no word on the end", "no word on what is lost", "turn, no word on what is lost", "no event",
	}
}

test_start_due if {
	held := {name | some name, one in _requests; start.start_due with input as one}
	held == object.keys(_requests) - {"history", "running", "no lists", "no event"}
}

test_tokens_left if {
	held := {name | some name, one in _requests; start.tokens_left with input as one with data.policy as _policy}
	held == object.keys(_requests) - {
		"no quota", "quota used up", "other quota", "quota without amount", "no event",
	}
	not start.tokens_left with input as _start with data.policy as {}
}

_ceilings := {
	"max_episode_tokens": 1, "max_turns": 1, "max_steps": 1, "max_spend_micros": 1, "forced_concession_threshold": 1,
	"retries": 1,
}

test_limited if {
	policy := {"episodes": {"ceilings": _ceilings}}
	start.limited with input as {"ceilings": _ceilings} with data.policy as policy
	every name in object.keys(_ceilings) {
		not start.limited with input as {"ceilings": json.remove(_ceilings, [name])} with data.policy as policy
		lacking := {"episodes": {"ceilings": json.remove(_ceilings, [name])}}
		not start.limited with input as {"ceilings": _ceilings} with data.policy as lacking
	}
}

_policy_of(change) := {"episodes": object.union(_policy.episodes, change)}

test_as_many_actors_as_the_policy_allows if {
	start.few_actors with input as _with({"actors": [{"id": "a"}, {"id": "b"}]}) with data.policy as _policy
	not start.few_actors with input as _with({"actors": {"x": {"id": "a"}}}) with data.policy as _policy
}

test_of_another_type if {
	every wrong in [null, true, "", [], {}] {
		not start.few_actors with input as _start with data.policy as _policy_of({"max_agents": wrong})
	}
	every wrong in [null, true, 0, [], {}] {
		owned := {"id": "g", "owner": wrong, "values": {}}
		not start.state_owned(owned) with input as _with({"actors": [{"id": wrong}]})
	}
	every roles in [[{"replies": "text"}], {0: {"replies": "text"}}] {
		not start.role_known({"id": "a", "role": 0}) with data.policy as _policy_of({"roles": roles})
	}
}
