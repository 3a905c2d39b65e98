package admission.requirements.episode.ceiling_test

import data.admission.lib.episode
import data.admission.requirements.episode.ceiling
import future.keywords.not

_ceilings := {
	"max_episode_tokens": 100, "max_turns": 2, "max_steps": 2, "max_spend_micros": 50,
	"forced_concession_threshold": 1,
}

_policy := {"episodes": {
	"ceilings": _ceilings,
	"call": {"tokens": 40},
	"estimate": {"tokens": 40, "spend_micros": 7},
	"penalties_reset": "never",
}}

_one := {
	"turn": 1, "attempt": 1, "actor": "a", "outcome": "accepted", "tokens_stated": true, "tokens": 60,
	"spend_stated": true, "spend_micros": 50, "bytes": 5, "sent_bytes": 5,
}

_turn := {
	"event": {"kind": "turn", "turn": 2, "attempt": 1, "actor": "a"},
	"actors": [{"id": "a", "role": "Actor"}],
	"ceilings": _ceilings,
	"history": [_one],
	"running": [],
	"broken": false,
}

_with(change) := object.union(_turn, change)

_past(change) := _with({"history": [object.union(_one, change)]})

_requests := {
	"turn": _turn,
	"tokens over": _past({"tokens": 101}),
	"tokens of a call": _with({"running": [{"turn": 2, "attempt": 1, "actor": "b"}]}),
	"tokens of two calls": _with({"running": [
		{"turn": 2, "attempt": 1, "actor": "b"},
		{"turn": 3, "attempt": 1, "actor": "c"},
	]}),
	"spend over": _past({"spend_micros": 51}),
	"no usage": json.remove(_past({}), ["history/0/tokens", "history/0/spend_micros"]),
	"steps over": _with({"history": [_one, object.union(_one, {"attempt": 2, "tokens": 0, "spend_micros": 0})]}),
	"turns over": _with({"event": {"turn": 3}}),
	"penalty": _past({"outcome": "rejected"}),
	"retry with a penalty": object.union(_past({"outcome": "rejected"}), {"event": {"attempt": 2}}),
	"broken": _with({"broken": true}),
	"broken retry": _with({"broken": true, "event": {"attempt": 2}}),
	"no word on what is lost": json.remove(_turn, ["broken"]),
	"no actors": _with({"actors": []}),
	"no history": json.remove(_turn, ["history"]),
	"no calls": json.remove(_turn, ["running"]),
	"no numbers": json.remove(_turn, ["event/turn", "event/attempt"]),
	"no ceilings": json.remove(_turn, ["ceilings"]),
	"no event": json.remove(_turn, ["event"]),
}

_rules := {"tokens_left", "spend_left", "step_left", "turn_left", "penalties_left"}

test_turns if {
	found := {rule: held |
		some rule in _rules
		held := {name | some name, one in _requests; ceiling[rule] with input as one with data.policy as _policy}
	}
	known := object.keys(_requests) - {"no ceilings", "no event"}
	found.tokens_left == known - {"tokens over", "tokens of two calls", "no usage", "no history", "no calls"}
	found.spend_left == known - {"spend over", "no usage", "no history"}
	found.step_left == known - {"tokens of a call", "tokens of two calls", "steps over", "no history", "no calls"}
	found.turn_left == known - {"turns over", "no numbers"}
	penalised := {"penalty", "broken", "broken retry", "no word on what is lost", "no actors", "no numbers"}
	known - found.penalties_left == penalised
}

test_values_missing if {
	held := {[rule, name] |
		some rule in _rules
		some name, one in _requests
		ceiling[rule] with input as one with data.policy as {}
	}
	held == {["penalties_left", "retry with a penalty"]}
}

test_other_events if {
	every rule in _rules {
		ceiling[rule] with input as {"event": {"kind": "end"}}
		not ceiling[rule] with input as {"event": {"kind": "other"}}
	}
}

test_another_event_has_no_turn if {
	every rule in _rules {
		every change in [{"kind": "other"}, {"kind": null}, {"kind": "other", "attempt": 2}] {
			not ceiling[rule] with input as _with({"event": change}) with data.policy as _policy
		}
	}
}

_wrong := [null, true, "", [], {}]

test_of_another_type if {
	every wrong in _wrong {
		every rule in {"tokens_left", "spend_left", "step_left", "turn_left"} {
			not ceiling[rule] with input as _turn with data.policy as _policy with episode.ceiling as wrong
		}
		not ceiling.spend_left with input as _turn with data.policy as _policy with episode.spend as wrong
		not ceiling.step_left with input as _turn with data.policy as _policy with episode.steps as wrong
		not ceiling.turn_left with input as _with({"event": {"turn": wrong}}) with data.policy as _policy
		not ceiling.penalties_left with input as _with({"event": {"attempt": wrong}}) with data.policy as _policy
		not ceiling.penalties_left with input as _turn with data.policy as _policy with episode.ceiling as wrong
	}
	not ceiling.tokens_left with input as _turn with data.policy as _policy with episode.reserved as ""
	not ceiling.penalties_left with input as _turn with data.policy as _policy with episode.all_penalties as [0]
}

test_each_actor_has_its_penalties if {
	twice := _with({"actors": array.concat(_turn.actors, _turn.actors)})
	not ceiling.penalties_left with input as twice with data.policy as _policy
}
