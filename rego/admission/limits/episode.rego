# What an event of an episode may do: a call, changes of the state, or the end.
package admission.limits.episode

import data.admission.lib.episode
import future.keywords.not

limits := object.union(_nothing, {"event": "start"}) if input.event.kind == "start"

limits := object.union(_nothing, {"event": "concession"}) if input.event.kind == "concession"

limits := object.union(_nothing, {"event": "text"}) if input.event.kind == "text"

# METADATA
# custom:
#   proof: every part is required; without one of them there are no limits
limits := object.union(_nothing, {"event": "turn", "call": {
	"tokens": min([data.policy.episodes.call.tokens, max([1, _tokens_left])]),
	"milliseconds": data.policy.episodes.call.milliseconds,
	"reply_bytes": data.policy.episodes.call.reply_bytes,
	"replies": _role.replies,
	"entry": _role.entry,
	"aside": _role.aside,
}}) if {
	input.event.kind == "turn"
}

# METADATA
# custom:
#   proof: the changes are counted, so one without id leaves the rule undefined
limits := object.union(_nothing, {
	"event": "proposal",
	"changes": changes,
	"resolution": input.proposal.propose_resolution,
	"abort": input.proposal.abort_episode,
}) if {
	input.event.kind == "proposal"
	is_boolean(input.proposal.propose_resolution)
	is_boolean(input.proposal.abort_episode)
	is_array(input.changes)
	changes := [change.id | some change in input.changes; is_string(change.id)]
	count(changes) == count(input.changes)
}

# METADATA
# custom:
#   proof: the scores are counted, so one that is missing leaves the rule undefined
limits := object.union(_nothing, {"event": "end", "end": {
	"reason": episode.reason,
	"scores": scores,
	"tokens": episode.tokens,
	"spend_micros": episode.spend,
	"penalties": episode.all_penalties,
	"review": input.review,
}}) if {
	input.event.kind == "end"
	is_array(input.review)
	scores := {id: score | some id in episode.proposers; score := data.policy.episodes.scores[episode.reason]}
	count(scores) == count(episode.proposers)
}

_nothing := {"event": "", "call": null, "changes": [], "resolution": false, "abort": false, "end": null}

_role := episode.role_of(input.event.actor)

_tokens_left := (episode.ceiling("max_episode_tokens") - episode.tokens) - episode.reserved
