package admission.requirements.episode.turn_test

import data.admission.lib.episode
import data.admission.requirements.episode.turn
import future.keywords.not

_policy := {"episodes": {
	"ceilings": {
		"retries": 1, "max_episode_tokens": 100, "max_turns": 9, "max_steps": 9, "max_spend_micros": 9,
		"forced_concession_threshold": 9,
	},
	"penalties_reset": "never",
	"roles": {"Actor": {"replies": "proposal"}},
}}

_rejected(attempt) := {
	"turn": 1, "attempt": attempt, "actor": "a", "outcome": "rejected", "tokens_stated": true, "tokens": 1,
	"spend_stated": true, "spend_micros": 0, "resolution": false, "abort": false,
}

_event(kind, actor, number, attempt) := {"kind": kind, "actor": actor, "turn": number, "attempt": attempt}

_input(event, history) := {
	"event": event,
	"actors": [{"id": "a", "role": "Actor"}, {"id": "b", "role": "Actor"}],
	"ceilings": {
		"retries": 9, "max_episode_tokens": 100, "max_turns": 9, "max_steps": 9, "max_spend_micros": 9,
		"forced_concession_threshold": 9,
	},
	"history": history,
	"running": [],
	"broken": false,
}

_accepted := object.union(_rejected(1), {"outcome": "accepted"})

_interrupted := object.union(_rejected(1), {"outcome": "interrupted"})

_running(call) := object.union(_input(_event("turn", "a", 1, 2), [_rejected(1)]), {"running": [call]})

_requests := {
	"first": _input(_event("turn", "a", 1, 1), []),
	"next": _input(_event("turn", "a", 2, 1), [_accepted]),
	"other actor": _input(_event("turn", "b", 2, 1), [_rejected(1)]),
	"retry": _input(_event("turn", "a", 1, 2), [_rejected(1)]),
	"retry after an interruption": _input(_event("turn", "a", 1, 2), [_interrupted]),
	"third": _input(_event("turn", "a", 1, 3), [_rejected(1), _rejected(2)]),
	"skipped": _input(_event("turn", "a", 3, 1), [_accepted]),
	"again": _input(_event("turn", "a", 1, 1), [_accepted]),
	"two open": _input(_event("turn", "a", 2, 1), [_rejected(1)]),
	"stranger": _input(_event("turn", "c", 1, 1), []),
	"retry of a stranger": _input(_event("turn", "c", 1, 2), [object.union(_rejected(1), {"actor": "c"})]),
	"retry of another": _input(_event("turn", "b", 1, 2), [_rejected(1)]),
	"retry of an accepted one": _input(_event("turn", "a", 1, 2), [_accepted]),
	"retry of nothing": _input(_event("turn", "a", 1, 2), []),
	"retry beside a call": _running({"turn": 1, "attempt": 2, "actor": "a"}),
	"retry beside another turn": _running({"turn": 2, "attempt": 1, "actor": "b"}),
	"no event": json.remove(_input({}, []), ["event"]),
	"no turn": _input({"kind": "turn", "actor": "a", "attempt": 1}, []),
	"no history": json.remove(_input(_event("turn", "a", 1, 1), []), ["history"]),
	"no ceilings": json.remove(_input(_event("turn", "a", 1, 1), []), ["ceilings"]),
	"end": _input({"kind": "end"}, []),
}

_due := {"first", "next", "other actor", "retry", "retry after an interruption", "third", "retry beside another turn"}

test_turn_due if {
	held := {name | some name, one in _requests; turn.turn_due with input as one with data.policy as _policy}
	held == _due | {"no ceilings", "end"}
	{name | some name, one in _requests; turn.turn_due with input as one with data.policy as {}} == {"end"}
}

test_retry_left if {
	held := {name | some name, one in _requests; turn.retry_left with input as one with data.policy as _policy}
	object.keys(_requests) - held == {"third", "no event", "no turn", "no history", "no ceilings"} - {"no history"}
	{name | some name, one in _requests; turn.retry_left with input as one with data.policy as {}} == {"end"}
}

_concessions := {
	"due": _input(_event("concession", "a", 1, 3), [_rejected(1), _rejected(2)]),
	"too early": _input(_event("concession", "a", 1, 2), [_rejected(1)]),
	"of another": _input(_event("concession", "b", 1, 3), [_rejected(1), _rejected(2)]),
	"after an accepted one": _input(
		_event("concession", "a", 1, 4),
		[_rejected(1), _rejected(2), object.union(_rejected(3), {"outcome": "accepted"})],
	),
	"of another number": _input(_event("concession", "a", 1, 4), [_rejected(1), _rejected(2)]),
	"of nothing": _input(_event("concession", "a", 1, 1), []),
	"no event": json.remove(_input({}, []), ["event"]),
	"turn": _input(_event("turn", "a", 1, 1), []),
}

test_concession_due if {
	held := {name | some name, one in _concessions; turn.concession_due with input as one with data.policy as _policy}
	held == {"due", "turn"}
	not turn.concession_due with input as _concessions.due with data.policy as {}
}

_over := _input({"kind": "end"}, [object.union(_accepted, {"tokens": 101})])

test_end_due if {
	turn.end_due with input as _over with data.policy as _policy
	not turn.end_due with input as _requests.end with data.policy as _policy
	not turn.end_due with input as object.union(_over, {"running": [{"turn": 2}]}) with data.policy as _policy
	not turn.end_due with input as json.remove(_over, ["running"]) with data.policy as _policy
	not turn.end_due with input as _over with data.policy as {}
	turn.end_due with input as _requests.first
	not turn.end_due with input as {}
}

test_an_attempt_of_another_number if {
	every attempt in [0, 3] {
		given := _input(_event("turn", "a", 1, attempt), [_rejected(1)])
		not turn.turn_due with input as given with data.policy as _policy
	}
}

_wrong := [null, true, "", [], {}]

test_another_event_is_not_due if {
	every kind in array.concat(["other"], _wrong) {
		every one in [_requests.first, _requests.retry] {
			given := object.union(one, {"event": {"kind": kind}})
			not turn.turn_due with input as given with data.policy as _policy
			not turn.retry_left with input as given with data.policy as _policy
		}
		conceded := object.union(_concessions.due, {"event": {"kind": kind}})
		not turn.concession_due with input as conceded with data.policy as _policy
		not turn.end_due with input as object.union(_over, {"event": {"kind": kind}}) with data.policy as _policy
	}
}

test_of_another_type if {
	every wrong in _wrong {
		given := object.union(_requests.first, {"event": {"turn": wrong}})
		not turn.retry_left with input as given with data.policy as _policy
		not turn.retry_left with input as _requests.first with data.policy as _policy with episode.ceiling as wrong
		not turn.concession_due with input as _concessions.due with data.policy as _policy with episode.ceiling as wrong
	}
	not turn.retry_left with input as _requests.first with data.policy as _policy with episode.rejected as {}
}
