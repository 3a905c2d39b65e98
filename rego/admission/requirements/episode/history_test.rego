package admission.requirements.episode.history_test

import data.admission.lib.episode
import data.admission.requirements.episode.history
import future.keywords.not

_one := {
	"id": "1.1", "turn": 1, "attempt": 1, "actor": "a", "sent_bytes": 1, "outcome": "accepted", "tokens_stated": true,
	"tokens": 10, "spend_stated": true, "spend_micros": 3, "bytes": 5, "resolution": false, "abort": false,
}

test_complete if {
	history.complete(_one)
	every name in object.keys(_one) - {"id"} {
		not history.complete(json.remove(_one, [name]))
		not history.complete(object.union(_one, {name: null}))
	}
	not history.complete(object.union(_one, {"actor": ""}))
	not history.complete(object.union(_one, {"outcome": "lost"}))
	not history.complete(object.union(_one, {"tokens": -1}))
}

test_unique if {
	history.unique with input as {"history": [], "running": []}
	history.unique with input as {"history": [_one], "running": [{"turn": 1, "attempt": 2, "actor": "b"}]}
	not history.unique with input as {"history": [_one, _one], "running": []}
	not history.unique with input as {"history": [_one], "running": [{"turn": 1, "attempt": 1, "actor": "b"}]}
	every call in [{"turn": 2}, {"turn": 2, "attempt": null, "actor": "b"}, {"turn": 2, "attempt": 1}] {
		not history.unique with input as {"history": [_one], "running": [call]}
	}
	not history.unique with input as {"history": []}
	not history.unique with input as {"running": []}
	not history.unique with input as {"history": null, "running": {}}
}

test_complete_with_an_estimate if {
	policy := {"episodes": {"estimate": {"tokens": 40, "spend_micros": 7}}}
	unstated := object.union(_one, {"tokens_stated": false, "spend_stated": false})
	history.complete(unstated) with data.policy as policy
	every wrong in [null, 1, "", [], {}] {
		every name in ["tokens_stated", "spend_stated"] {
			not history.complete(object.union(_one, {name: wrong})) with episode.tokens_of as 1 with episode.spend_of as 1
		}
	}
	every wrong in [null, true, "", [], {}] {
		every name in ["tokens", "spend_micros"] {
			not history.complete(object.union(unstated, {name: wrong})) with data.policy as policy
		}
	}
	not history.complete(object.union(_one, {"spend_micros": -1}))
}

test_the_turn_of_a_call_is_a_number if {
	every wrong in [null, true, "", [], {}] {
		calls := [{"turn": wrong, "attempt": 1, "actor": "b"}]
		not history.unique with input as {"history": [_one], "running": calls}
	}
}
