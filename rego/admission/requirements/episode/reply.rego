package admission.requirements.episode.reply

import data.admission.lib.episode
import future.keywords.not

# METADATA
# title: The reply belongs to a call in progress
# description: A second reply to one call, or one of another actor, changes nothing. A role makes proposals or writes
#   text.
# custom:
#   code: reply_out_of_turn
#   proof: one call in progress with these numbers and this actor is enough; calls are unique
#   remedy: Reply once, when called
#   reads: [episodes.roles]
# labels:
#   row: E05, H16
in_turn if episode.besides({"proposal", "text"})

in_turn if {
	input.event.kind == episode.role_of(input.event.actor).replies
	some call in input.running
	call.actor == input.event.actor
	call.turn == input.event.turn
	call.attempt == input.event.attempt
}

# METADATA
# title: The actor replied in time
# description: The time of a call is a value in policy/episodes.yaml. What comes later is dropped.
# custom:
#   code: reply_missing
#   after: [reply_out_of_turn]
#   remedy: Reply sooner, or have call.milliseconds in policy/episodes.yaml raised
#   reads: [episodes.call]
# labels:
#   row: E03
in_time if episode.besides({"proposal", "text"})

in_time if {
	input.event.kind in {"proposal", "text"}
	input.reply.missing == false
}

# METADATA
# title: The reply is within the size limit
# description: The size is a value in policy/episodes.yaml.
# custom:
#   code: reply_too_large
#   after: [reply_out_of_turn]
#   remedy: Shorten the reply, or have call.reply_bytes in policy/episodes.yaml raised
#   reads: [episodes.call]
# labels:
#   row: E03
small_enough if episode.besides({"proposal", "text"})

small_enough if {
	input.event.kind in {"proposal", "text"}
	is_number(input.reply.bytes)
	is_number(data.policy.episodes.call.reply_bytes)
	input.reply.bytes <= data.policy.episodes.call.reply_bytes
}

# METADATA
# title: A proposal is one JSON object
# description: It is read as strict JSON, without keys written twice, and never evaluated.
# custom:
#   code: proposal_not_json
#   after: [reply_missing, reply_too_large]
#   remedy: Reply with one JSON object and nothing around it
# labels:
#   row: E22, E32
readable if episode.besides({"proposal"})

readable if {
	input.event.kind == "proposal"
	input.reply.readable == true
}

# METADATA
# title: The proposal fits the schema of an ActionProposal
# description: Unknown keys are forbidden. `propose_resolution` and `abort_episode` are booleans; a parameter is
#   declared in the state, and its new value has the same type. The list contains the fields that do not fit.
# custom:
#   code: proposal_schema_invalid
#   after: [proposal_not_json]
#   each: problems
#   empty: required
#   proof: the list contains only problems, so an empty list means that there are none
#   facts: {problem: problem}
#   remedy: Correct the field; the subject names its path
# labels:
#   row: E02, E03, E04, E31
fits if input.problems == []

# METADATA
# title: An actor changes only its own parameters
# description: A proposal with one foreign change is refused as a whole.
# custom:
#   code: unauthorized_state_transition
#   fixed: true
#   each: changes
#   empty: allowed
#   remedy: Change only parameters of groups that the actor owns
# labels:
#   row: E05
owned(change) if {
	is_string(change.id)
	is_string(change.owner)
	change.owner == input.event.actor
}

# METADATA
# title: An actor that aborts the episode says why
# description: Text in the transcript may ask an actor to abort; an actor that follows it has no reason of its own.
# custom:
#   code: abort_unjustified
#   after: [proposal_not_json]
#   proof: a proposal with a problem is denied for it
#   remedy: State a justification, or do not abort
# labels:
#   row: E24
abort_justified if episode.besides({"proposal"})

abort_justified if {
	input.event.kind == "proposal"
	input.problems != []
}

abort_justified if {
	input.event.kind == "proposal"
	input.proposal.abort_episode == false
}

abort_justified if {
	input.event.kind == "proposal"
	input.proposal.abort_episode == true
	is_number(input.proposal.justification_bytes)
	input.proposal.justification_bytes > 0
}
