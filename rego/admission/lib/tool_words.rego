# Words of commands that may be hosts: which of them count as hosts, and what covers those.
package admission.lib.tool_words

import data.admission.lib.tool_aspects as aspects
import data.admission.lib.tool_commands as commands
import future.keywords.not

# The destinations that count: all but the words that policy/tools.yaml excludes as hosts.
#
# METADATA
# custom:
#   proof: a word is left out only if a value names a prefix of its command
hosts := [destination | some destination in input.destinations; not no_host(destination)] if {
	is_array(input.destinations)
}

# The destinations that an allow rule has to cover: of a tool whose connections are decided on one by one, none of those
# in commands. Deny and confirm rules see them all.
#
# METADATA
# custom:
#   proof: a destination is left out only if the entry of the tool says so
to_cover := [destination | some destination in hosts; not enforced(destination)] if is_array(hosts)

enforced(destination) if {
	is_string(destination.command)
	commands.connections_decided
}

# policy/tools.yaml excludes any word of a command, a word without user or colon, or the next word after a prefix.
no_host(destination) if {
	some prefix in aspects.prefixes(_words(destination))
	data.policy.tool_lookup.words_without_hosts.all[prefix] == true
}

no_host(destination) if {
	destination.word.remote == false
	some prefix in aspects.prefixes(_words(destination))
	data.policy.tool_lookup.words_without_hosts.plain[prefix] == true
}

no_host(destination) if {
	some prefix in _reaching(destination, destination.word.index - 1)
	data.policy.tool_lookup.words_without_hosts.next[prefix] == true
}

no_host(destination) if _in_script(destination)

# The paths that count: all but what only a script of a known form contains.
#
# METADATA
# custom:
#   proof: a path is left out only if a value has a pattern that matches the whole script
paths := [path | some path in input.paths; not no_path(path)] if is_array(input.paths)

no_path(path) if _in_script(path)

# It is in a word that is only printed.
no_path(path) if {
	path.canonical == false
	is_number(path.place)
	data.policy.program_rows[_command(path.command)[0]].any_words == true
}

# Paths and hosts whose form does not matter. What looks like one in a script is one too: a rule has to permit the
# script, and no rule covers such a path or host.
no_name(path) if no_path(path)

no_name(path) if {
	path.canonical == false
	some part in _scripts(path)
	part.index == path.place
}

# METADATA
# custom:
#   proof: a path that is in no known command is in no script
_scripts(found) := [part |
	some part in input.command_parts
	part.kind == "script"
	part.command == found.command
]

# It is in a script that one of the patterns of policy/commands.yaml matches, which can do nothing but edit and print.
#
# METADATA
# custom:
#   proof: the script is in exactly one command and at one place, which are facts of both
_in_script(found) if {
	is_number(found.place)
	some part in _scripts(found)
	part.index == found.place
	commands.abilities(part) == {"none"}
}

# Aspects of a destination for allow rules: a word also counts as one of the first words of its command.
#
# METADATA
# custom:
#   proof: a word that lacks a fact keeps the stricter form, and a destination without an origin is not covered
allowed(destination) := {"any host"} | _reaching(destination, destination.word.index) if {
	destination.word.label == true
} else := aspects.of_destination(destination) | _reaching(destination, destination.word.index) if {
	destination.word.label == false
} else := aspects.of_destination(destination)

# Aspects of a destination for deny and confirm rules.
refused(destination) := aspects.of_destination_refused(destination)

refused(destination) := {"any host"} if destination.word.label == true

# The prefixes of its command that have more than `length` words.
_reaching(destination, length) := aspects.prefixes(words) - aspects.prefixes(array.slice(words, 0, length)) if {
	# regal ignore:defer-assignment
	words := _words(destination)
	is_number(length)
}

_words(destination) := _command(destination.word.command)

# The first words of the command that contains a word.
#
# METADATA
# custom:
#   proof: the word is in exactly one command, found by its id
_command(id) := command.words if {
	some command in input.commands
	command.canonical == true
	command.id == id
}
