package admission.requirements.transcript.entry

import future.keywords.not

# METADATA
# title: The author of the entry is an actor of the episode, or from outside
# description: The engine sets author and role; what a text or its source claims is never taken over.
# custom:
#   code: author_unknown
#   each: entries
#   remedy: Name an actor of the episode, or none for text from outside
# labels:
#   row: E36
#   threat: injection
author_known(entry) if {
	is_string(entry.author)
	is_string(entry.role)
	is_array(data.policy.episodes.roles[entry.role].entries)
}

# METADATA
# title: The role may have entries of this kind
# description: So text from outside never becomes a monologue, and a hint never a dialogue.
# custom:
#   code: entry_kind_not_admitted
#   each: entries
#   after: [author_unknown]
#   remedy: Use a kind that policy/episodes.yaml lists for the role
#   reads: ["episodes.roles.{role}", episodes.entries]
# labels:
#   row: E36
#   threat: injection
kind_admitted(entry) if {
	is_string(entry.kind)
	entry.kind in data.policy.episodes.roles[entry.role].entries
	is_string(data.policy.episodes.entries[entry.kind])
}

# METADATA
# title: The entry names a recipient if it is for one actor
# description: A hint without a known recipient would be read by no one.
# custom:
#   code: recipient_unknown
#   each: entries
#   after: [entry_kind_not_admitted]
#   remedy: Name an actor of the episode as the recipient
#   reads: [episodes.entries]
# labels:
#   row: E26
#   threat: injection
recipient_known(entry) if data.policy.episodes.entries[entry.kind] in {"all", "author"}

recipient_known(entry) if {
	data.policy.episodes.entries[entry.kind] == "recipient"
	entry.recipient_known == true
	is_string(entry.recipient)
}

# METADATA
# title: The entry is within the size limit
# description: The size is a value in policy/episodes.yaml.
# custom:
#   code: entry_too_large
#   each: entries
#   remedy: Shorten the text
#   reads: [episodes.entry_bytes]
# labels:
#   row: E25
#   threat: injection
small_enough(entry) if {
	is_number(entry.bytes)
	is_number(data.policy.episodes.entry_bytes)
	entry.bytes <= data.policy.episodes.entry_bytes
}

# METADATA
# title: The entry was searched for quotes and claims
# description: An entry that quotes another actor's monologue, or claims another role, is marked for review.
# custom:
#   code: entry_unchecked
#   each: entries
#   remedy: Append the entry through the engine, and fewer or shorter entries at a time
# labels:
#   row: E26, E36
#   threat: injection
checked(entry) if {
	is_boolean(entry.poses)
	is_array(entry.quotes)
}
