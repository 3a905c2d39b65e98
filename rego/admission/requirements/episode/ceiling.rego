package admission.requirements.episode.ceiling

import data.admission.lib.episode
import future.keywords.not

# METADATA
# title: The tokens of the episode are within its maximum
# description: Tokens of rejected replies count, and so do those that calls in progress may still use. So an episode
#   exceeds its maximum by at most one turn.
# custom:
#   code: CostLimitExceededError
#   after: [history_incomplete]
#   remedy: End the episode; give the next one a higher max_episode_tokens, or have its actors say less
#   reads: [episodes.ceilings.max_episode_tokens, episodes.call]
# labels:
#   row: E11, E20, E35, H16
#   threat: DoS
tokens_left if episode.besides({"turn"})

tokens_left if {
	input.event.kind == "turn"
	is_number(episode.tokens)
	is_number(episode.reserved)
	is_number(episode.ceiling("max_episode_tokens"))
	episode.tokens + episode.reserved <= episode.ceiling("max_episode_tokens")
}

# METADATA
# title: The spend of the episode is within its maximum
# description: A call without stated spend counts the estimate in policy/episodes.yaml.
# custom:
#   code: spend_limit_exceeded
#   after: [history_incomplete]
#   remedy: End the episode; give the next one a higher max_spend_micros
#   reads: [episodes.ceilings.max_spend_micros, episodes.estimate]
# labels:
#   row: C66
#   threat: DoS
spend_left if episode.besides({"turn"})

spend_left if {
	input.event.kind == "turn"
	is_number(episode.spend)
	is_number(episode.ceiling("max_spend_micros"))
	episode.spend <= episode.ceiling("max_spend_micros")
}

# METADATA
# title: The episode has a step left
# description: Every call of an actor is a step, retries included.
# custom:
#   code: step_limit_exceeded
#   remedy: End the episode; give the next one a higher max_steps
#   reads: [episodes.ceilings.max_steps]
# labels:
#   row: C66
#   threat: DoS
step_left if episode.besides({"turn"})

step_left if {
	input.event.kind == "turn"
	is_number(episode.steps)
	is_number(episode.ceiling("max_steps"))
	episode.steps < episode.ceiling("max_steps")
}

# METADATA
# title: The episode has a turn left
# description: A retry belongs to its turn.
# custom:
#   code: timeout
#   remedy: End the episode; give the next one a higher max_turns
#   reads: [episodes.ceilings.max_turns]
# labels:
#   row: E12, E21
#   threat: DoS
turn_left if episode.besides({"turn"})

turn_left if {
	input.event.kind == "turn"
	is_number(input.event.turn)
	is_number(episode.ceiling("max_turns"))
	input.event.turn <= episode.ceiling("max_turns")
}

# METADATA
# title: No actor has reached the maximum number of penalties, and nothing of the episode is lost
# description: A turn with rejected replies is one penalty. Retries of that turn are still made.
# custom:
#   code: EpisodeCorruptedError
#   proof: the penalties are counted against the actors, so one that is missing leaves the rule undefined
#   after: [history_incomplete]
#   remedy: End the episode; correct the actor whose replies were rejected
#   reads: [episodes.ceilings.forced_concession_threshold, episodes.penalties_reset]
# labels:
#   row: E03, E22, E37
#   threat: DoS
penalties_left if episode.besides({"turn"})

penalties_left if {
	input.event.kind == "turn"
	input.broken == false
	is_number(input.event.attempt)
	input.event.attempt > 1
}

penalties_left if {
	input.event.kind == "turn"
	input.broken == false
	input.event.attempt == 1
	is_object(episode.all_penalties)
	is_number(episode.ceiling("forced_concession_threshold"))
	count(episode.all_penalties) == count(input.actors)
	max([penalty | some penalty in episode.all_penalties]) < episode.ceiling("forced_concession_threshold")
}
