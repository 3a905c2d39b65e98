# Which rule of the policy refuses the call in the input, asks a person about it, or allows it.
package admission.lib.tool_call

import data.admission.lib.tool_aspects as aspects
import data.admission.lib.tool_prefixes as prefixes
import data.admission.lib.tool_rules as rules
import data.admission.lib.tool_words as words
import data.admission.lib.tools
import future.keywords.not

# The numbers of the rules that refuse it, and of those that ask; undefined unless all of them could be looked at.
denying := rules.matching(input.asked.policy, input.call.tool, "deny", _found)

confirming := rules.matching(input.asked.policy, input.call.tool, "confirm", _found)

# The number of the first rule that allows it.
allowing := rules.first_allowing(input.asked.policy, input.call.tool, held) if tools.principal_admitted(input.asked)

# The approved beginning of a command that allows it. Destinations and paths need a rule all the same.
approved := prefixes.for_commands[0] if {
	tools.shown(input.asked, input.call.tool)
	_besides_commands_allowed
}

# What decides: the section, the rule as `<ruleset>/<id>` or `prefix:<id>`, and on which basis it allows.
#
# METADATA
# custom:
#   proof: a section counts only when the sections before it have no match, and were whole
decided := {"section": "deny", "rule": rules.name(input.asked.policy, "deny", min(denying))} if {
	count(denying) > 0
} else := {"section": "confirm", "rule": rules.name(input.asked.policy, "confirm", min(confirming))} if {
	count(denying) == 0
	count(confirming) > 0
} else := {"section": "allow", "rule": rules.name(input.asked.policy, "allow", allowing), "basis": "rule"} if {
	_undisputed
} else := {"section": "allow", "rule": concat(":", ["prefix", approved]), "basis": "argument_text_prefix"} if {
	_undisputed
}

_undisputed if {
	count(denying) == 0
	count(confirming) == 0
}

# METADATA
# custom:
#   proof: what is not canonical is left out here, and refused by requirements of its own
_found := ((({"always"} | hosts) | paths) | commands) | touched if {
	is_array(words.counted)
	is_array(input.paths)
	is_array(input.commands)
	is_array(input.call.touches)
	hosts := {aspect | some one in words.counted; some aspect in words.refused(one)}
	paths := {aspect | some one in input.paths; some aspect in aspects.path_refused(one, input.asked)}
	commands := {aspect | some one in input.commands; some aspect in aspects.command_refused(one, input.asked)}
	touched := aspects.touched(input.call.touches, input.asked) | aspects.unplaced(input.call)
}

# Everything the call holds, each with what a rule that allows may cover of it.
#
# METADATA
# custom:
#   proof: what is not canonical is left out, and then the counts differ
held := {"hosts": hosts, "paths": paths, "commands": commands} if {
	is_array(words.counted)
	is_array(input.paths)
	is_array(input.commands)
	hosts := [words.allowed(one) | some one in words.counted]
	paths := [aspects.path(one) | some one in input.paths]
	commands := [aspects.command(one) | some one in input.commands]
	count(hosts) == count(words.counted)
	count(paths) == count(input.paths)
	count(commands) == count(input.commands)
}

_besides_commands_allowed if {
	count(_other_hosts) == 0
	count(held.paths) == 0
}

_besides_commands_allowed if {
	count(_other_hosts) + count(held.paths) > 0
	besides := {"hosts": _other_hosts, "paths": held.paths, "commands": []}
	is_number(rules.first_allowing(input.asked.policy, input.call.tool, besides))
}

# The hosts that no approved beginning names as a word of its command.
#
# METADATA
# custom:
#   proof: each counts unless a beginning in force reaches it, and `held` says that all of them could be looked at
_other_hosts := [words.allowed(one) | some one in words.counted; not prefixes.names(one)] if is_array(held.hosts)
