# What an episode has used so far, computed from its history, and why it would end.
package admission.lib.episode

import future.keywords.not

_kinds := {"start", "turn", "proposal", "text", "concession", "end"}

# METADATA
# description: Whether the event is known and none of these.
besides(kinds) if input.event.kind in (_kinds - kinds)

# METADATA
# description: The lower of the ceiling of the episode and that of the policy.
ceiling(name) := min([stated, most]) if {
	stated := input.ceilings[name]
	most := data.policy.episodes.ceilings[name]
	is_number(stated)
	is_number(most)
}

# METADATA
# description: What an attempt counts; without stated usage an estimate that is not below what a provider would count.
tokens_of(one) := one.tokens if {
	one.tokens_stated == true
	is_number(one.tokens)
	one.tokens >= 0
}

tokens_of(one) := max([data.policy.episodes.estimate.tokens, one.sent_bytes + one.bytes]) if {
	one.tokens_stated == false
	_called(one)
	is_number(data.policy.episodes.estimate.tokens)
	is_number(one.bytes)
	is_number(one.sent_bytes)
}

# METADATA
# description: The spend of an attempt in millionths; without stated usage the estimate.
spend_of(one) := one.spend_micros if {
	one.spend_stated == true
	is_number(one.spend_micros)
	one.spend_micros >= 0
}

spend_of(one) := data.policy.episodes.estimate.spend_micros if {
	one.spend_stated == false
	_called(one)
	is_number(data.policy.episodes.estimate.spend_micros)
}

_called(one) if one.outcome in {"accepted", "rejected", "interrupted"}

# METADATA
# description: Tokens of all attempts.
# custom:
#   proof: every attempt is counted, so one that cannot be leaves the sum undefined
tokens := sum(counted) if {
	is_array(input.history)
	counted := [tokens_of(one) | some one in input.history]
	count(counted) == count(input.history)
}

# METADATA
# description: Spend of all attempts.
# custom:
#   proof: every attempt is counted, so one that cannot be leaves the sum undefined
spend := sum(counted) if {
	is_array(input.history)
	counted := [spend_of(one) | some one in input.history]
	count(counted) == count(input.history)
}

# METADATA
# description: Tokens that are reserved for the calls in progress.
reserved := count(input.running) * data.policy.episodes.call.tokens if is_array(input.running)

# METADATA
# description: The calls that were made or are in progress.
# custom:
#   proof: conceded turns are counted and subtracted, so an attempt without outcome counts as a call
steps := (count(input.history) - count(conceded)) + count(input.running) if {
	is_array(input.history)
	is_array(input.running)
	conceded := [1 | some one in input.history; one.outcome == "conceded"]
}

# METADATA
# description: The turns that have begun.
# custom:
#   proof: every attempt has a turn, which another requirement checks
turns := {one.turn | some one in array.concat(input.history, input.running)} if {
	is_array(input.history)
	is_array(input.running)
}

# METADATA
# description: The attempts of a turn that have ended.
# custom:
#   proof: it only selects; its users compare the numbers of attempts
attempts(turn) := [one | some one in input.history; one.turn == turn]

# METADATA
# description: The attempts of a turn that were rejected.
# custom:
#   proof: it only selects; another requirement checks that every attempt has an outcome
rejected(turn) := [one | some one in input.history; one.turn == turn; one.outcome == "rejected"]

# METADATA
# description: The turns that are closed by an accepted reply or by a concession.
# custom:
#   proof: a turn without outcome is not closed
closed contains one.turn if {
	some one in input.history
	one.outcome in {"accepted", "conceded"}
}

# METADATA
# description: The penalties of an actor. A turn with rejected replies is one, however often it is reported.
# custom:
#   proof: another requirement checks that every attempt has an actor, a turn and an outcome
penalties(actor) := count({turn | some turn in _penalised(actor); turn > reset}) if {
	reset := _reset(actor)
	is_number(reset)
}

# METADATA
# custom:
#   proof: it only selects, and the attempts are complete, as for penalties
_penalised(actor) := {one.turn | some one in input.history; one.actor == actor; one.outcome == "rejected"}

_reset(_) := 0 if data.policy.episodes.penalties_reset == "never"

# METADATA
# custom:
#   proof: it only selects, and the attempts are complete, as for penalties
_reset(actor) := max({0} | (accepted - _penalised(actor))) if {
	data.policy.episodes.penalties_reset == "clean_turn"
	accepted := {one.turn | some one in input.history; one.actor == actor; one.outcome == "accepted"}
}

# METADATA
# description: The penalties of every actor.
# custom:
#   proof: an actor is left out only if the policy does not say when penalties reset; then nothing is allowed
all_penalties[actor.id] := penalties(actor.id) if some actor in input.actors

# METADATA
# description: The actors that make proposals.
# custom:
#   proof: another requirement checks the role of every actor
proposers contains actor.id if {
	some actor in input.actors
	data.policy.episodes.roles[actor.role].replies == "proposal"
}

# METADATA
# description: What the actor with this id may reply, as its role says.
# custom:
#   proof: ids of actors are unique, which another requirement checks
role_of(id) := data.policy.episodes.roles[actor.role] if {
	some actor in input.actors
	actor.id == id
}

# METADATA
# description: Whether the tokens are exceeded.
over_tokens if {
	is_number(tokens)
	is_number(ceiling("max_episode_tokens"))
	tokens > ceiling("max_episode_tokens")
}

# METADATA
# description: Whether the spend is exceeded.
over_spend if {
	is_number(spend)
	is_number(ceiling("max_spend_micros"))
	spend > ceiling("max_spend_micros")
}

# METADATA
# description: Whether an actor has reached the maximum number of penalties, and no turn is open.
# custom:
#   proof: the numbers are those of the engine; the turn requirement asks the opposite and is refused without them
corrupted if {
	turns == closed
	some penalty in all_penalties
	penalty >= ceiling("forced_concession_threshold")
}

# METADATA
# description: Whether an accepted proposal has aborted the episode.
# custom:
#   proof: ends an episode; an allow needs its opposite, which another requirement states
aborted if {
	some one in input.history
	one.outcome == "accepted"
	one.abort == true
}

# METADATA
# description: Whether the last reply of every proposing actor was accepted and proposes a resolution.
# custom:
#   proof: there must be a proposing actor, and each is compared
completed if {
	count(proposers) > 0
	agreed := {id | some id in proposers; _last(id).outcome == "accepted"; _last(id).resolution == true}
	agreed == proposers
}

# METADATA
# custom:
#   proof: the newest turn of the actor; turns and attempts are unique, which another requirement checks
_last(id) := one if {
	newest := max({past.turn | some past in input.history; past.actor == id})
	final := max({past.attempt | some past in input.history; past.turn == newest})
	some one in input.history
	one.turn == newest
	one.attempt == final
}

# METADATA
# description: Why the episode ends; undefined while it goes on.
# custom:
#   proof: everything that is compared was counted before, so no reason is passed over because a fact is missing
reason := "EpisodeCorruptedError" if {
	_counted
	input.broken == true
} else := "CostLimitExceededError" if {
	_counted
	over_tokens
} else := "spend_limit_exceeded" if {
	_counted
	over_spend
} else := "EpisodeCorruptedError" if {
	_counted
	corrupted
} else := "aborted" if {
	_counted
	aborted
} else := "completed" if {
	_counted
	completed
} else := "step_limit_exceeded" if {
	_counted
	steps >= ceiling("max_steps")
} else := "timeout" if {
	_counted
	count(turns) >= ceiling("max_turns")
	turns == closed
}

_counted if {
	is_boolean(input.broken)
	is_number(tokens)
	is_number(spend)
	is_number(steps)
	is_set(turns)
	is_object(all_penalties)
	count(all_penalties) == count(input.actors)
	is_number(ceiling("max_episode_tokens"))
	is_number(ceiling("max_spend_micros"))
	is_number(ceiling("forced_concession_threshold"))
	is_number(ceiling("max_steps"))
	is_number(ceiling("max_turns"))
}
