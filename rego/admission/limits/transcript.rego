# The entries as they are appended: author and role as the engine knows them, and who reads them.
package admission.limits.transcript

import future.keywords.not

# METADATA
# custom:
#   proof: the entries are counted, so one that is incomplete leaves the rule undefined
limits := {"episode": input.episode, "entries": entries} if {
	is_array(input.entries)
	entries := [_admitted(entry) | some entry in input.entries]
	count(entries) == count(input.entries)
}

_admitted(entry) := {
	"author": entry.author,
	"role": entry.role,
	"kind": entry.kind,
	"readers": _readers(entry),
	"mark_for_review": _marked(entry),
	"digest": entry.digest,
}

_readers(entry) := "all" if data.policy.episodes.entries[entry.kind] == "all"

_readers(entry) := [entry.author] if data.policy.episodes.entries[entry.kind] == "author"

_readers(entry) := [entry.author, entry.recipient] if data.policy.episodes.entries[entry.kind] == "recipient"

# METADATA
# custom:
#   proof: every quote and the claim must be below what is marked; anything that is missing leaves it undefined
_marked(entry) := false if {
	entry.poses == false
	short := [quote | some quote in entry.quotes; _short(quote)]
	count(short) == count(entry.quotes)
} else := true

_short(quote) if {
	quote.whole == false
	is_number(quote.words)
	is_number(data.policy.episodes.quoted_words)
	quote.words < data.policy.episodes.quoted_words
}
