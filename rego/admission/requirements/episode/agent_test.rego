package admission.requirements.episode.agent_test

import data.admission.requirements.episode.agent
import future.keywords.not

_agent := {"id": "a1", "role": "Actor", "active": true, "max_turns": 2, "max_tokens": 100}

_actor := {"id": "buyer", "role": "Actor", "agent": "a1", "due": true}

_past(turn, tokens) := {
	"actor": "buyer",
	"turn": turn,
	"outcome": "accepted",
	"tokens_stated": true,
	"tokens": tokens,
}

_asked(history) := {"agents": [_agent], "event": {"actor": "buyer", "turn": 9}, "history": history}

test_an_active_agent_in_its_role if {
	agent.agent_active(_actor) with input as _asked([])
	every change in [{"agent": "a2"}, {"agent": null}, {"role": "Judge"}, {"role": null}] {
		not agent.agent_active(object.union(_actor, change)) with input as _asked([])
	}
	every change in [{"active": false}, {"active": null}, {"role": "Judge"}, {"id": "a2"}] {
		not agent.agent_active(_actor) with input as {"agents": [object.union(_agent, change)]}
	}
	not agent.agent_active(_actor) with input as {}
}

test_the_constraints_count_for_the_agent_that_is_called if {
	agent.agent_constrained(_actor) with input as _asked([])
	agent.agent_constrained(_actor) with input as _asked([_past(1, 40), _past(9, 59)])
	not agent.agent_constrained(_actor) with input as _asked([_past(1, 1), _past(2, 1)])
	not agent.agent_constrained(_actor) with input as _asked([_past(1, 100)])
	agent.agent_constrained(object.union(_actor, {"due": false})) with input as _asked([_past(1, 1), _past(2, 1)])
	others := [object.union(_past(turn, 100), {"actor": "seller"}) | some turn in [1, 2, 3]]
	agent.agent_constrained(_actor) with input as _asked(others)
}

test_what_is_missing_or_mistyped_does_not_hold if {
	not agent.agent_constrained(object.remove(_actor, ["due"])) with input as _asked([])
	not agent.agent_constrained(object.union(_actor, {"due": null})) with input as _asked([])
	not agent.agent_constrained(object.union(_actor, {"agent": "a2"})) with input as _asked([])
	every field in ["agents", "event", "history"] {
		not agent.agent_constrained(_actor) with input as object.remove(_asked([]), [field])
	}
	every field in ["max_turns", "max_tokens"] {
		every wrong in [null, "9", {}] {
			given := object.union(_asked([]), {"agents": [object.union(_agent, {field: wrong})]})
			not agent.agent_constrained(_actor) with input as given
		}
	}
	not agent.agent_constrained(_actor) with input as _asked([object.remove(_past(1, 1), ["tokens"])])
}

test_no_name_is_not_the_same_name if {
	every wrong in [null, true, [], {}] {
		every change in [{"id": wrong}, {"role": wrong}] {
			given := {"agents": [object.union(_agent, change)]}
			not agent.agent_active(object.union(_actor, {"agent": given.agents[0].id, "role": given.agents[0].role}))
				with input as given
		}
		every event in [{"actor": wrong}, {"turn": wrong}] {
			not agent.agent_constrained(_actor) with input as object.union(_asked([]), {"event": event})
		}
	}
}
