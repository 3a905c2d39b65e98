package admission.requirements.episode.start

import data.admission.lib.episode
import future.keywords.not

# METADATA
# title: The number of actors is within the maximum
# description: The maximum is a value in policy/episodes.yaml. Ids of actors are unique.
# custom:
#   code: MaxAgentsExceededError
#   proof: the ids are counted, so an actor without one makes the counts differ
#   remedy: State each actor once, and no more than max_agents in policy/episodes.yaml
#   reads: [episodes.max_agents]
# labels:
#   row: E31, E32
few_actors if {
	is_array(input.actors)
	is_number(data.policy.episodes.max_agents)
	count(input.actors) > 0
	count(input.actors) <= data.policy.episodes.max_agents
	count({actor.id | some actor in input.actors; actor.id != ""}) == count(input.actors)
}

# METADATA
# title: The episode states every ceiling
# description: Nothing is unlimited; the policy has ceilings of its own, and the lower one applies.
# custom:
#   code: ceilings_incomplete
#   remedy: State every ceiling as a whole number
#   reads: [episodes.ceilings]
# labels:
#   row: E31
limited if {
	is_number(episode.ceiling("max_episode_tokens"))
	is_number(episode.ceiling("max_turns"))
	is_number(episode.ceiling("max_steps"))
	is_number(episode.ceiling("max_spend_micros"))
	is_number(episode.ceiling("forced_concession_threshold"))
	is_number(episode.ceiling("retries"))
}

# METADATA
# title: The role of the actor is known
# description: Roles are rows in policy/episodes.yaml; `external` is the role of text from outside, not of an actor.
# custom:
#   code: role_unknown
#   each: actors
#   remedy: Give the actor a role that has a row in policy/episodes.yaml
#   reads: ["episodes.roles.{role}"]
# labels:
#   row: E30
role_known(actor) if {
	is_string(actor.id)
	is_string(actor.role)
	actor.role != "external"
	is_string(data.policy.episodes.roles[actor.role].replies)
}

# METADATA
# title: The parameters belong to an actor of the episode
# description: Only the owner of a group of parameters may change them.
# custom:
#   code: state_owner_unknown
#   each: state
#   empty: allowed
#   proof: one actor with this id is enough; ids of actors are unique
#   remedy: Name an actor of the episode as the owner of the group
# labels:
#   row: E05
state_owned(group) if {
	is_string(group.id)
	is_string(group.owner)
	is_object(group.values)
	some actor in input.actors
	actor.id == group.owner
}

# METADATA
# title: The episode has started and has not ended
# description: Nothing happens in an episode after its end, and it ends once.
# custom:
#   code: episode_over
#   proof: every attempt states its outcome and whether it aborts or resolves, which another requirement checks
#   remedy: Start another episode
# labels:
#   row: H16, E37
goes_on if {
	input.ended == false
	is_boolean(input.broken)
	episode.besides({"turn"})
}

goes_on if {
	input.ended == false
	is_boolean(input.broken)
	input.event.kind == "turn"
	is_array(input.history)
	not episode.aborted
	not episode.completed
}

# METADATA
# title: A new episode has no history
# description: Whatever happened before belongs to another episode.
# custom:
#   code: start_not_due
#   proof: both lists must be there, and empty ones state that nothing happened
#   remedy: Start the episode under another id, or resume it
# labels:
#   row: H16
start_due if episode.besides({"start"})

start_due if {
	input.event.kind == "start"
	input.history == []
	input.running == []
}

# METADATA
# title: The tokens of the episode are within the quota
# description: The quota is a value in policy/budgets.yaml. An episode takes as many tokens as it states.
# custom:
#   code: "episode_quota:tokens"
#   proof: only the quota of this name counts
#   remedy: State fewer max_episode_tokens, or wait for the next quota window
#   reads: [budgets.quotas.episode.tokens]
# labels:
#   row: E10
tokens_left if episode.besides({"start"})

tokens_left if {
	input.event.kind == "start"
	some counted in input.quotas
	counted.id == "tokens"
	is_number(counted.used)
	is_number(counted.amount)
	counted.used + counted.amount <= data.policy.budgets.quotas.episode.tokens.limit
}
