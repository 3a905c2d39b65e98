package admission.requirements.episode.reply_test

import data.admission.requirements.episode.reply
import future.keywords.not

_policy := {"episodes": {
	"roles": {"Actor": {"replies": "proposal"}, "Disruptor": {"replies": "text"}},
	"call": {"reply_bytes": 100},
}}

_proposal := {
	"event": {"kind": "proposal", "actor": "a", "turn": 1, "attempt": 1},
	"actors": [{"id": "a", "role": "Actor"}, {"id": "d", "role": "Disruptor"}],
	"running": [{"actor": "a", "turn": 1, "attempt": 1}],
	"reply": {"bytes": 100, "missing": false, "readable": true},
	"proposal": {"propose_resolution": false, "abort_episode": false, "justification_bytes": 0},
	"changes": [],
	"problems": [],
}

_with(change) := object.union(_proposal, change)

_requests := {
	"proposal": _proposal,
	"text": _with({"event": {"kind": "text", "actor": "d"}, "running": [{"actor": "d", "turn": 1, "attempt": 1}]}),
	"text of an actor": _with({"event": {"kind": "text"}}),
	"of another": _with({"event": {"actor": "d"}}),
	"of a stranger": _with({"event": {"actor": "x"}}),
	"of another turn": _with({"event": {"turn": 2}}),
	"of another attempt": _with({"event": {"attempt": 2}}),
	"no call": _with({"running": []}),
	"no list": json.remove(_proposal, ["running"]),
	"missing": _with({"reply": {"missing": true}}),
	"large": _with({"reply": {"bytes": 101}}),
	"no reply": json.remove(_proposal, ["reply"]),
	"not JSON": _with({"reply": {"readable": false}}),
	"problem": _with({"problems": [{"id": "admin", "problem": "unknown"}]}),
	"no problems": json.remove(_proposal, ["problems"]),
	"no changes": json.remove(_proposal, ["changes"]),
	"no resolution": json.remove(_proposal, ["proposal/propose_resolution"]),
	"resolution is text": _with({"proposal": {"propose_resolution": "true"}}),
	"no word on aborting": json.remove(_proposal, ["proposal/abort_episode"]),
	"aborts": _with({"proposal": {"abort_episode": true}}),
	"aborts with a problem": _with({
		"proposal": {"abort_episode": true},
		"problems": [{"id": "admin", "problem": "unknown"}],
	}),
	"aborts for a reason": _with({"proposal": {"abort_episode": true, "justification_bytes": 9}}),
	"aborts for a text": _with({"proposal": {"abort_episode": true, "justification_bytes": "9"}}),
	"end": {"event": {"kind": "end"}, "problems": []},
	"no event": json.remove(_proposal, ["event"]),
}

_refused := {
	"in_turn": {
		"text of an actor", "of another", "of a stranger", "of another turn", "of another attempt", "no call", "no list",
		"no event",
	},
	"in_time": {"missing", "no reply", "no event"},
	"small_enough": {"large", "no reply", "no event"},
	"readable": {"not JSON", "no reply", "no event"},
	"fits": {"problem", "aborts with a problem", "no problems"},
	"abort_justified": {"aborts", "aborts for a text", "no word on aborting", "no event"},
}

test_replies if {
	every rule, refused in _refused {
		held := {name | some name, one in _requests; reply[rule] with input as one with data.policy as _policy}
		held == object.keys(_requests) - refused
	}
}

test_values_missing if {
	every rule in ["in_turn", "small_enough"] {
		held := {name | some name, one in _requests; reply[rule] with input as one with data.policy as {}}
		held == {"end"}
	}
}

test_owned if {
	reply.owned({"id": "A.price", "owner": "a"}) with input as _proposal
	every change in [{"id": "B.price", "owner": "b"}, {"id": "A.price"}, {"owner": "a"}, {}] {
		not reply.owned(change) with input as _proposal
	}
	not reply.owned({"id": "A.price", "owner": "a"}) with input as {}
}

test_another_event_does_not_abort if {
	every kind in ["other", null] {
		every aborts in [{"abort_episode": false}, {"abort_episode": true, "justification_bytes": 9}] {
			not reply.abort_justified with input as _with({"event": {"kind": kind}, "proposal": aborts})
		}
		not reply.abort_justified with input as _with({"event": {"kind": kind}, "problems": [{"id": "a"}]})
	}
	every wrong in _wrong - {true} {
		not reply.abort_justified with input as _with({"proposal": {"abort_episode": wrong, "justification_bytes": 9}})
	}
}

test_another_call_is_not_answered if {
	beside := _with({"running": [{"actor": "d", "turn": 1, "attempt": 1}]})
	not reply.in_turn with input as beside with data.policy as _policy
}

_wrong := {null, true, "", [], {}}

test_of_another_type if {
	every wrong in _wrong {
		not reply.small_enough with input as _with({"reply": {"bytes": wrong}}) with data.policy as _policy
		policy := {"episodes": {"call": {"reply_bytes": wrong}}}
		not reply.small_enough with input as _proposal with data.policy as policy
	}
	every wrong in _wrong - {""} {
		not reply.owned({"id": "A.price", "owner": wrong}) with input as _with({"event": {"actor": wrong}})
	}
}
