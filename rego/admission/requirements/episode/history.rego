package admission.requirements.episode.history

import data.admission.lib.episode
import future.keywords.not

# METADATA
# title: Every earlier attempt is complete
# description: Tokens, penalties and scores are computed from the history, so nothing may be missing in it.
# custom:
#   code: history_incomplete
#   each: history
#   empty: allowed
#   remedy: State the history exactly as in the earlier decisions
# labels:
#   row: E10, E35
complete(one) if {
	is_string(one.actor)
	one.actor != ""
	is_number(one.turn)
	is_number(one.attempt)
	one.outcome in {"accepted", "rejected", "conceded", "interrupted"}
	is_boolean(one.resolution)
	is_boolean(one.abort)
	is_number(one.bytes)
	is_number(one.sent_bytes)
	is_boolean(one.tokens_stated)
	is_number(one.tokens)
	is_boolean(one.spend_stated)
	is_number(one.spend_micros)
	is_number(episode.tokens_of(one))
	is_number(episode.spend_of(one))
}

# METADATA
# title: Every attempt is stated once
# description: An event that is repeated has no effect.
# custom:
#   code: history_repeated
#   proof: the pairs are counted, so a missing number makes the counts differ
#   remedy: State each attempt of each turn once
# labels:
#   row: H16
unique if {
	is_array(input.history)
	is_array(input.running)
	calls := array.concat(input.history, input.running)
	pairs := {[call.turn, call.attempt] |
		some call in calls
		is_string(call.actor)
		is_number(call.turn)
		is_number(call.attempt)
	}
	count(pairs) == count(calls)
}
