# Words of commands that may be hosts or something else: which of them count as hosts, and what covers those.
package admission.lib.tool_words

import data.admission.lib.tool_aspects as aspects
import future.keywords.not

# The destinations that count: all but the words of which policy/tools.yaml says that they are no hosts.
#
# METADATA
# custom:
#   proof: a word is left out only when a value names the beginning of its command
counted := [one | some one in input.destinations; not no_host(one)] if is_array(input.destinations)

# Whether a value says of a word that it is no host: any word of a command, one without user or colon, or the next one.
no_host(one) if {
	some beginning in aspects.beginnings(_words(one))
	data.policy.tool_lookup.words_without_hosts.all[beginning] == true
}

no_host(one) if {
	one.word.remote == false
	some beginning in aspects.beginnings(_words(one))
	data.policy.tool_lookup.words_without_hosts.plain[beginning] == true
}

no_host(one) if {
	some beginning in _reaching(one, one.word.index - 1)
	data.policy.tool_lookup.words_without_hosts.next[beginning] == true
}

# What a rule that allows may cover of a destination: a word also as one of the first words of its command.
#
# METADATA
# custom:
#   proof: the stricter form stands where a word lacks a fact, and without an origin it covers nothing
allowed(one) := {"any host"} | _reaching(one, one.word.index) if {
	one.word.label == true
} else := aspects.destination(one) | _reaching(one, one.word.index) if {
	one.word.label == false
} else := aspects.destination(one)

# What a rule that refuses or asks may cover of a destination.
refused(one) := aspects.destination(one)

refused(one) := {"any host"} if one.word.label == true

# The beginnings of its command that are longer than so many words.
_reaching(one, length) := aspects.beginnings(words) - aspects.beginnings(array.slice(words, 0, length)) if {
	# regal ignore:defer-assignment
	words := _words(one)
	is_number(length)
}

# The first words of the command that a word stands in.
#
# METADATA
# custom:
#   proof: a word stands in one command, the one that has its id
_words(one) := command.words if {
	some command in input.commands
	command.canonical == true
	command.id == one.word.command
}
