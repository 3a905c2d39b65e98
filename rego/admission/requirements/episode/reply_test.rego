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
	"aborts for a reason": _with({"proposal": {"abort_episode": true, "justification_bytes": 9}}),
	"aborts for a text": _with({"proposal": {"abort_episode": true, "justification_bytes": "9"}}),
	"end": {"event": {"kind": "end"}, "problems": []},
	"no event": json.remove(_proposal, ["event"]),
}

_held(rule, policy) := {name | some name, one in _requests; reply[rule] with input as one with data.policy as policy}

_all := object.keys(_requests) - {"no event"}

test_in_turn if {
	_all - _held("in_turn", _policy) == {
		"text of an actor", "of another", "of a stranger", "of another turn", "of another attempt", "no call", "no list",
	}
	_held("in_turn", {}) == {"end"}
}

test_in_time if _all - _held("in_time", _policy) == {"missing", "no reply"}

test_small_enough if {
	_all - _held("small_enough", _policy) == {"large", "no reply"}
	_held("small_enough", {}) == {"end"}
}

test_readable if _all - _held("readable", _policy) == {"not JSON", "no reply"}

test_fits if {
	_all - _held("fits", _policy) == {
		"problem", "no problems", "no changes", "no resolution", "resolution is text", "no word on aborting",
	}
}

test_owned if {
	reply.owned({"id": "A.price", "owner": "a"}) with input as _proposal
	every change in [{"id": "B.price", "owner": "b"}, {"id": "A.price"}, {"owner": "a"}, {}] {
		not reply.owned(change) with input as _proposal
	}
	not reply.owned({"id": "A.price", "owner": "a"}) with input as {}
}

test_abort_justified if {
	_all - _held("abort_justified", _policy) == {"aborts", "aborts for a text", "no word on aborting"}
}
