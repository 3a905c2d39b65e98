package admission.requirements.episode.agent

import data.admission.lib.episode
import future.keywords.not

# METADATA
# title: An actor that is a provisioned agent is active, in its role
# description: Agents are created at point provisioning, with the approval of a person, and active until they are ended.
# custom:
#   code: agent_inactive
#   each: cast
#   empty: allowed
#   proof: one agent with this id is enough; ids of agents are unique
#   remedy: Name an active agent and its role; `engine agent list` prints them
# labels:
#   row: E13
agent_active(actor) if {
	is_string(actor.agent)
	is_string(actor.role)
	some agent in input.agents
	agent.id == actor.agent
	agent.role == actor.role
	agent.active == true
}

# METADATA
# title: A provisioned agent stays within its constraints
# description: A person approved max_turns and max_tokens with its specification. They count in each episode.
# custom:
#   code: agent_constraints_exceeded
#   each: cast
#   empty: allowed
#   proof: turns and tokens of the actor that is called are counted, and every attempt has them
#   remedy: End the episode, or provision an agent with wider constraints
#   after: [agent_inactive]
# labels:
#   row: E13
agent_constrained(actor) if actor.due == false

agent_constrained(actor) if {
	actor.due == true
	count(_tokens) == count(_attempts)
	some agent in input.agents
	agent.id == actor.agent
	count(_earlier_turns) < agent.max_turns
	is_number(agent.max_turns)
	is_number(agent.max_tokens)
	sum(_tokens) < agent.max_tokens
}

# METADATA
# custom:
#   proof: without an actor or a history it is undefined, and so is what counts it
_attempts := [one | some one in input.history; one.actor == input.event.actor] if {
	is_string(input.event.actor)
	is_array(input.history)
}

# METADATA
# custom:
#   proof: without the number of this turn it is undefined, and so is what counts it
_earlier_turns := {one.turn | some one in _attempts; one.turn != input.event.turn} if is_number(input.event.turn)

# METADATA
# custom:
#   proof: a number for each attempt is demanded where they are added
_tokens := [episode.tokens_of(one) | some one in _attempts]
