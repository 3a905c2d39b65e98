# Beginnings of commands that a person has approved, for one tool, principal and working folder.
#
# They compare the text of arguments only and say nothing about the program that the system will run.
package admission.lib.tool_prefixes

import future.keywords.not

# The approved beginning that counts for each command of the call, by its id.
#
# METADATA
# custom:
#   proof: each command that no approved beginning covers is missing here, and the counts are compared
for_commands := found if {
	is_array(input.commands)
	count(input.commands) > 0
	found := [min(ids) |
		some command in input.commands
		ids := {prefix.id | some prefix in _counting; _begins(command, prefix)}
		count(ids) > 0
	]
	count(found) == count(input.commands)
}

# Whether an approved beginning of its command names this word, which may be a host.
#
# METADATA
# custom:
#   proof: a word stands in one command, the one that has its id
names(one) if {
	some command in input.commands
	command.id == one.word.command
	some prefix in _counting
	_begins(command, prefix)

	# regal ignore:non-loop-expression
	is_number(one.word.index)
	is_array(prefix.words)
	count(prefix.words) > one.word.index
}

# METADATA
# custom:
#   proof: a prefix that lacks a fact is left out, and what is left out allows nothing
_counting := [prefix |
	some prefix in input.prefixes
	is_string(prefix.id)
	_bound(prefix) == _call
	_in_force(prefix)
]

_bound(prefix) := {"tool": prefix.tool, "principal": prefix.principal, "cwd": prefix.cwd}

_call := {"tool": input.call.tool, "principal": input.caller.principal, "cwd": input.asked.cwd} if {
	"execute" in data.policy.tools.tools[input.call.tool].side_effects
	is_string(input.caller.principal)
	is_string(input.asked.cwd)
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

_begins(command, prefix) if {
	command.canonical == true
	is_array(command.words)
	is_array(prefix.words)
	count(prefix.words) > 0
	array.slice(command.words, 0, count(prefix.words)) == prefix.words
}
