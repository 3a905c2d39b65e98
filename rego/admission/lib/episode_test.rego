package admission.lib.episode_test

import data.admission.lib.episode
import future.keywords.not

_policy := {"episodes": {
	"ceilings": {
		"max_episode_tokens": 1000, "max_turns": 9, "max_steps": 9, "max_spend_micros": 100,
		"forced_concession_threshold": 2, "retries": 2,
	},
	"call": {"tokens": 50},
	"estimate": {"tokens": 40, "spend_micros": 7},
	"penalties_reset": "clean_turn",
	"roles": {"Actor": {"replies": "proposal"}, "Disruptor": {"replies": "text"}},
}}

_one := {
	"turn": 1, "attempt": 1, "actor": "a", "outcome": "accepted", "tokens_stated": true, "tokens": 10,
	"spend_stated": true, "spend_micros": 3, "bytes": 5, "sent_bytes": 6, "resolution": false, "abort": false,
}

_with(change) := object.union(_one, change)

_input(history, running) := {
	"event": {"kind": "end"},
	"actors": [{"id": "a", "role": "Actor"}, {"id": "b", "role": "Actor"}, {"id": "c", "role": "Disruptor"}],
	"ceilings": {
		"max_episode_tokens": 100, "max_turns": 2, "max_steps": 9, "max_spend_micros": 1000,
		"forced_concession_threshold": 9, "retries": 9,
	},
	"history": history,
	"running": running,
	"broken": false,
}

_without_usage := {"tokens_stated": false, "tokens": 0, "spend_stated": false, "spend_micros": 0}

test_besides if {
	held := {kind |
		some kind in ["start", "turn", "proposal", "text", "concession", "end", "other", null]
		episode.besides({"turn", "end"}) with input as {"event": {"kind": kind}}
	}
	held == {"start", "proposal", "text", "concession"}
	not episode.besides({"turn"}) with input as {}
}

test_ceiling_is_the_lower_one if {
	episode.ceiling("max_episode_tokens") == 100 with input as _input([], []) with data.policy as _policy
	episode.ceiling("max_spend_micros") == 100 with input as _input([], []) with data.policy as _policy
	not episode.ceiling("max_turns") with input as {} with data.policy as _policy
	not episode.ceiling("max_turns") with input as _input([], []) with data.policy as {}
	wrong := object.union(_input([], []), {"ceilings": {"max_turns": "2"}})
	not episode.ceiling("max_turns") with input as wrong with data.policy as _policy
}

test_counted_usage if {
	episode.tokens_of(_one) == 10 with data.policy as _policy
	episode.tokens_of(_with(_without_usage)) == 40 with data.policy as _policy
	episode.tokens_of(object.union(_with(_without_usage), {"bytes": 90})) == 96 with data.policy as _policy
	episode.spend_of(_one) == 3 with data.policy as _policy
	episode.spend_of(_with(_without_usage)) == 7 with data.policy as _policy
	every change in [
		{"tokens": -1, "spend_micros": -1}, {"tokens": "1", "spend_micros": null}, {"tokens_stated": null, "spend_stated": 1},
		{"tokens_stated": false, "spend_stated": false, "outcome": "other"},
	] {
		not episode.tokens_of(_with(change)) with data.policy as _policy
		not episode.spend_of(_with(change)) with data.policy as _policy
	}
	not episode.tokens_of(_with(_without_usage)) with data.policy as {}
	not episode.spend_of(_with(_without_usage)) with data.policy as {}
	not episode.tokens_of(json.remove(_with(_without_usage), ["bytes"])) with data.policy as _policy
	not episode.tokens_of(json.remove(_with(_without_usage), ["sent_bytes"])) with data.policy as _policy
}

test_sums if {
	history := [_one, _with({"turn": 2, "outcome": "rejected"}), _with({"turn": 2, "attempt": 2, "outcome": "conceded"})]
	running := [{"turn": 3, "attempt": 1, "actor": "b"}]
	counted := episode with input as _input(history, running) with data.policy as _policy
	counted.tokens == 30
	counted.spend == 9
	counted.reserved == 50
	counted.steps == 3
	counted.turns == {1, 2, 3}
	counted.closed == {1, 2}
	lacking := _input([json.remove(_one, ["tokens", "spend_micros"])], [])
	incomplete := episode with input as lacking with data.policy as _policy
	not incomplete.tokens
	not incomplete.spend
	nothing := episode with input as {} with data.policy as _policy
	every name in ["tokens", "spend", "reserved", "steps", "turns", "reason"] {
		not nothing[name]
	}
}

test_attempts_of_a_turn if {
	history := [_with({"outcome": "rejected"}), _with({"attempt": 2}), _with({"turn": 2})]
	count(episode.attempts(1)) == 2 with input as _input(history, [])
	count(episode.rejected(1)) == 1 with input as _input(history, [])
	count(episode.rejected(2)) == 0 with input as _input(history, [])
}

test_penalties if {
	rejected := [_with({"turn": turn, "outcome": "rejected"}) | some turn in [1, 1, 3]]
	history := array.concat(rejected, [_with({"turn": 2}), _with({"turn": 3, "attempt": 2})])
	episode.penalties("a") == 1 with input as _input(history, []) with data.policy as _policy
	never := object.union(_policy, {"episodes": {"penalties_reset": "never"}})
	episode.penalties("a") == 2 with input as _input(history, []) with data.policy as never
	episode.all_penalties == {"a": 2, "b": 0, "c": 0} with input as _input(history, []) with data.policy as never
	episode.all_penalties == {} with input as _input(history, []) with data.policy as {}
	not episode.penalties("a") with input as _input(history, []) with data.policy as {}
}

test_roles if {
	episode.proposers == {"a", "b"} with input as _input([], []) with data.policy as _policy
	episode.role_of("c") == {"replies": "text"} with input as _input([], []) with data.policy as _policy
	not episode.role_of("d") with input as _input([], []) with data.policy as _policy
}

_last(a, b) := [_with({"resolution": a}), _with({"turn": 2, "actor": "b", "resolution": b})]

_two_penalties := [_with({"outcome": "rejected"}), _with({"attempt": 2, "outcome": "conceded"})]

_reasons := {
	"EpisodeCorruptedError": [_two_penalties, {"ceilings": {"forced_concession_threshold": 1}}],
	"CostLimitExceededError": [[_with({"tokens": 101})], {}],
	"spend_limit_exceeded": [[_with({"spend_micros": 101})], {}],
	"aborted": [[_with({"abort": true})], {}],
	"completed": [_last(true, true), {}],
	"step_limit_exceeded": [[_one], {"ceilings": {"max_steps": 1}}],
	"timeout": [_last(true, false), {}],
}

test_reason if {
	every wanted, case in _reasons {
		state := object.union(_input(case[0], []), case[1])
		episode.reason == wanted with input as state with data.policy as _policy
		broken := object.union(state, {"broken": true})
		episode.reason == "EpisodeCorruptedError" with input as broken with data.policy as _policy
		not episode.reason with input as json.remove(state, ["broken"]) with data.policy as _policy
		not episode.reason with input as json.remove(state, ["ceilings/max_turns"]) with data.policy as _policy
	}
	not episode.reason with input as _input([_one], []) with data.policy as _policy
	open := [_one, _with({"turn": 2, "actor": "b", "outcome": "rejected"})]
	not episode.reason with input as _input(open, []) with data.policy as _policy
}

test_completed_by_the_last_reply_of_each if {
	later := array.concat(_last(true, true), [_with({"turn": 3, "resolution": false})])
	not episode.completed with input as _input(later, []) with data.policy as _policy
	rejected := array.concat(_last(true, true), [_with({"turn": 3, "outcome": "rejected"})])
	not episode.completed with input as _input(rejected, []) with data.policy as _policy
	not episode.completed with input as _input([_with({"resolution": true})], []) with data.policy as _policy
	none := object.union(_input([], []), {"actors": [{"id": "c", "role": "Disruptor"}]})
	not episode.completed with input as none with data.policy as _policy
}

_wrong := [null, true, "", [], {}]

test_usage_of_another_type if {
	unstated := _with(_without_usage)
	every wrong in _wrong {
		not episode.spend_of(_with({"spend_micros": wrong})) with data.policy as _policy
		policy := {"episodes": {"estimate": {"tokens": wrong, "spend_micros": wrong}}}
		not episode.tokens_of(unstated) with data.policy as policy
		not episode.spend_of(unstated) with data.policy as policy
		ceilings := {"episodes": {"ceilings": {"max_turns": wrong}}}
		not episode.ceiling("max_turns") with input as _input([], []) with data.policy as ceilings
	}
}

test_lists_of_another_type if {
	every wrong in [null, true, "", {}] {
		past := episode with input as object.union(_input([], []), {"history": wrong}) with data.policy as _policy
		every name in ["tokens", "spend", "steps", "turns"] { not past[name] }
		present := episode with input as object.union(_input([], []), {"running": wrong}) with data.policy as _policy
		every name in ["reserved", "steps", "turns"] { not present[name] }
	}
}

test_a_clean_turn_is_the_actors_own_and_accepted if {
	rejected := _with({"outcome": "rejected"})
	every change in [{"actor": "b"}, {"outcome": "conceded"}, {"outcome": "interrupted"}] {
		history := [rejected, object.union(_with({"turn": 2}), change)]
		episode.penalties("a") == 1 with input as _input(history, []) with data.policy as _policy
	}
	odd := [rejected, _with({"turn": "2"})]
	not episode.penalties("a") with input as _input(odd, []) with data.policy as _policy
}

test_at_the_ceiling_nothing_is_exceeded if {
	exact := _input([_with({"tokens": 100, "spend_micros": 100})], [])
	not episode.over_tokens with input as exact with data.policy as _policy
	not episode.over_spend with input as exact with data.policy as _policy
	every wrong in _wrong {
		not episode.over_tokens with input as exact with data.policy as _policy with episode.tokens as wrong
		not episode.over_spend with input as exact with data.policy as _policy with episode.spend as wrong
		not episode.over_tokens with input as exact with data.policy as _policy with episode.ceiling as wrong
		not episode.over_spend with input as exact with data.policy as _policy with episode.ceiling as wrong
	}
}

test_an_open_turn_may_still_be_accepted if {
	one_penalty := object.union(_input([_with({"outcome": "rejected"})], []), _reasons.EpisodeCorruptedError[1])
	not episode.corrupted with input as one_penalty with data.policy as _policy
}

test_a_rejected_reply_ends_nothing if {
	not episode.aborted with input as _input([_with({"abort": true, "outcome": "rejected"})], [])
	rejected := array.concat(_last(true, true), [_with({"turn": 3, "outcome": "rejected", "resolution": true})])
	not episode.completed with input as _input(rejected, []) with data.policy as _policy
}

test_the_last_reply_is_of_the_last_turn if {
	retried := array.concat([_with({"attempt": 2})], [_with({"turn": 3, "resolution": true}), _last(true, true)[1]])
	episode.completed with input as _input(retried, []) with data.policy as _policy
}

test_no_reason_unless_all_is_counted if {
	broken := object.union(_input([_one], []), {"broken": true})
	episode.reason == "EpisodeCorruptedError" with input as broken with data.policy as _policy
	every name in object.keys(broken.ceilings) - {"retries"} {
		not episode.reason with input as json.remove(broken, [concat("/", ["ceilings", name])]) with data.policy as _policy
	}
	every wrong in _wrong {
		not episode.reason with input as broken with data.policy as _policy with episode.tokens as wrong
		not episode.reason with input as broken with data.policy as _policy with episode.spend as wrong
		not episode.reason with input as broken with data.policy as _policy with episode.steps as wrong
		not episode.reason with input as broken with data.policy as _policy with episode.turns as wrong
	}
	not episode.reason with input as broken with data.policy as _policy with episode.all_penalties as [0, 0, 0]
	unsaid := json.remove(_policy, ["episodes/penalties_reset"])
	not episode.reason with input as broken with data.policy as unsaid
}
