package admission.limits.episode_test

import data.admission.limits.episode
import future.keywords.not

_ceilings := {
	"max_episode_tokens": 100, "max_turns": 9, "max_steps": 9, "max_spend_micros": 9,
	"forced_concession_threshold": 9,
}

_policy := {"episodes": {
	"ceilings": _ceilings,
	"call": {"tokens": 60, "milliseconds": 5, "reply_bytes": 7},
	"estimate": {"tokens": 1, "spend_micros": 1},
	"penalties_reset": "never",
	"scores": {"CostLimitExceededError": -5},
	"roles": {"Actor": {"replies": "proposal", "entry": "dialogue", "aside": "monologue"}},
}}

_input(event, tokens) := {
	"event": event,
	"actors": [{"id": "a", "role": "Actor"}],
	"ceilings": _ceilings,
	"running": [],
	"broken": false,
	"review": [3],
	"history": [{
		"turn": 1, "attempt": 1, "actor": "a", "outcome": "accepted", "tokens_stated": true, "tokens": tokens,
		"spend_stated": true, "spend_micros": 2, "resolution": false, "abort": false,
	}],
}

_nothing := {"call": null, "changes": [], "resolution": false, "abort": false, "end": null}

test_without_effect if {
	every kind in ["start", "text", "concession"] {
		limits := object.union(_nothing, {"event": kind})
		episode.limits == limits with input as {"event": {"kind": kind}}
	}
	not episode.limits with input as {"event": {"kind": "other"}}
	not episode.limits with input as {}
}

_turn := {"kind": "turn", "actor": "a"}

_call(tokens) := object.union(_nothing, {"event": "turn", "call": {
	"tokens": tokens, "milliseconds": 5, "reply_bytes": 7, "replies": "proposal", "entry": "dialogue",
	"aside": "monologue",
}})

test_call if {
	episode.limits == _call(60) with input as _input(_turn, 20) with data.policy as _policy
	episode.limits == _call(30) with input as _input(_turn, 70) with data.policy as _policy
	episode.limits == _call(1) with input as _input(_turn, 100) with data.policy as _policy
	every path in ["actors", "ceilings", "running", "history", "event/actor"] {
		not episode.limits with input as json.remove(_input(_turn, 20), [path]) with data.policy as _policy
	}
	not episode.limits with input as _input(_turn, 20) with data.policy as {}
}

_proposal := {
	"event": {"kind": "proposal"},
	"proposal": {"propose_resolution": true, "abort_episode": false},
	"changes": [{"id": "A.price"}],
}

test_changes if {
	limits := object.union(_nothing, {"event": "proposal", "changes": ["A.price"], "resolution": true})
	episode.limits == limits with input as _proposal
	every path in ["proposal/propose_resolution", "proposal/abort_episode", "changes", "changes/0/id"] {
		not episode.limits with input as json.remove(_proposal, [path])
	}
}

test_end if {
	over := _input({"kind": "end"}, 101)
	limits := object.union(_nothing, {"event": "end", "end": {
		"reason": "CostLimitExceededError", "scores": {"a": -5}, "tokens": 101, "spend_micros": 2,
		"penalties": {"a": 0}, "review": [3],
	}})
	episode.limits == limits with input as over with data.policy as _policy
	not episode.limits with input as json.remove(over, ["review"]) with data.policy as _policy
	not episode.limits with input as _input({"kind": "end"}, 1) with data.policy as _policy
	scoreless := json.remove(_policy, ["episodes/scores/CostLimitExceededError"])
	not episode.limits with input as over with data.policy as scoreless
}
