package admission.requirements.episode.turn

import data.admission.lib.episode
import future.keywords.not

# METADATA
# title: The call is the next of its turn
# description: A turn begins with attempt 1 of an actor without an open turn. A further attempt follows rejected ones
#   of the same actor.
# custom:
#   code: turn_not_due
#   proof: turns and attempts are unique and complete, which other requirements check
#   remedy: Number turns and attempts in order, and wait for the reply of the actor
# labels:
#   row: E05, H16
turn_due if episode.besides({"turn"})

turn_due if {
	input.event.kind == "turn"
	input.event.attempt == 1
	is_object(episode.role_of(input.event.actor))
	input.event.turn == count(episode.turns) + 1
	open := {one.turn | some one in array.concat(input.history, input.running); one.actor == input.event.actor}
	open - episode.closed == set()
}

turn_due if {
	input.event.kind == "turn"
	is_object(episode.role_of(input.event.actor))
	earlier := episode.attempts(input.event.turn)
	input.event.attempt == count(earlier) + 1
	{one.actor | some one in earlier} == {input.event.actor}
	{one.outcome | some one in earlier} - {"rejected", "interrupted"} == set()
	{call.turn | some call in input.running} & {input.event.turn} == set()
}

# METADATA
# title: The turn has a retry left
# description: After the last one the engine closes the turn with a concession.
# custom:
#   code: retries_exhausted
#   remedy: Close the turn with a concession
#   reads: [episodes.ceilings.retries]
# labels:
#   row: E22
retry_left if episode.besides({"turn"})

retry_left if {
	input.event.kind == "turn"
	is_number(input.event.turn)
	is_number(episode.ceiling("retries"))
	is_array(episode.rejected(input.event.turn))
	count(episode.rejected(input.event.turn)) <= episode.ceiling("retries")
}

# METADATA
# title: A concession follows the last retry
# description: The engine concedes for an actor all of whose replies in the turn were rejected. It changes nothing.
# custom:
#   code: concession_not_due
#   proof: turns and attempts are unique and complete, which other requirements check
#   remedy: Let the actor reply first
#   reads: [episodes.ceilings.retries]
# labels:
#   row: E22
concession_due if episode.besides({"concession"})

concession_due if {
	input.event.kind == "concession"
	earlier := episode.attempts(input.event.turn)
	input.event.attempt == count(earlier) + 1
	{one.actor | some one in earlier} == {input.event.actor}
	{one.outcome | some one in earlier} - {"rejected", "interrupted"} == set()
	is_number(episode.ceiling("retries"))
	count(episode.rejected(input.event.turn)) > episode.ceiling("retries")
}

# METADATA
# title: The episode has a reason to end
# description: It is resolved, aborted or corrupted, or has used up a maximum; and no call is in progress.
# custom:
#   code: end_not_due
#   proof: the list must be there, and an empty one states that no call is in progress
#   after: [history_incomplete]
#   remedy: Continue the episode
# labels:
#   row: E11, E12, E22
end_due if episode.besides({"end"})

end_due if {
	input.event.kind == "end"
	input.running == []
	is_string(episode.reason)
}
