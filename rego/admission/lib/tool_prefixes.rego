# Command prefixes that a person has approved, for one tool, principal and working folder.
#
# Only the text of arguments is compared; the program that the system will run is not checked.
package admission.lib.tool_prefixes

import data.admission.lib.tool_commands as commands
import future.keywords.not

# The id of the approved prefix that applies to a command, of several the first by name.
#
# METADATA
# custom:
#   proof: a prefix that lacks a fact is left out; without any, there is no smallest id
approved(command) := min({prefix.id | some prefix in _valid; _starts_with(command, prefix)})

# An approved prefix of its command contains this word, which may be a host.
#
# METADATA
# custom:
#   proof: the word is in exactly one command, found by its id
approved_word(destination) if {
	some command in input.commands
	command.id == destination.word.command
	some prefix in _valid
	_starts_with(command, prefix)

	# regal ignore:non-loop-expression
	is_number(destination.word.index)
	is_array(prefix.words)
	count(prefix.words) > destination.word.index
}

# METADATA
# custom:
#   proof: a prefix that lacks a fact is left out, and then allows nothing
_valid := [prefix |
	some prefix in input.prefixes
	is_string(prefix.id)
	_scope(prefix) == _call
	_in_force(prefix)
]

_scope(prefix) := {"tool": prefix.tool, "principal": prefix.principal, "cwd": prefix.cwd}

_call := {"tool": input.call.tool, "principal": input.caller.principal, "cwd": input.context.cwd} if {
	"execute" in data.policy.tools.tools[input.call.tool].side_effects
	is_string(input.caller.principal)
	is_string(input.context.cwd)
}

_in_force(prefix) if {
	prefix.revoked == false
	is_string(prefix.approver)
	is_string(prefix.principal)
	prefix.approver != prefix.principal
	is_number(prefix.expires_at)
	is_number(input.now)
	input.now < prefix.expires_at
}

# METADATA
# custom:
#   proof: what the command can do beyond the prefix is defined only if all its parts are known
_starts_with(command, prefix) if {
	command.canonical == true
	is_array(command.words)
	is_array(prefix.words)
	count(prefix.words) > 0
	array.slice(command.words, 0, count(prefix.words)) == prefix.words
	commands.beyond(command, count(prefix.words)) == set()
}
