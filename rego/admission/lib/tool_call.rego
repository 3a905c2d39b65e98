# Which rule of the policy denies the call, requires confirmation, or allows it.
package admission.lib.tool_call

import data.admission.lib.tool_aspects as aspects
import data.admission.lib.tool_commands
import data.admission.lib.tool_prefixes as prefixes
import data.admission.lib.tool_rules as rules
import data.admission.lib.tool_values
import data.admission.lib.tool_words as words
import data.admission.lib.tools
import future.keywords.not

# The numbers of the deny and of the confirm rules that match; undefined unless all could be evaluated.
denying := rules.matching(input.context.policy, input.call.tool, "deny", _aspects, input.values) | _met("deny")

confirming := _asked | _met("confirm")

_asked := rules.matching(input.context.policy, input.call.tool, "confirm", _aspects, input.values)

# The rules with a path that a pattern of file names may become.
#
# METADATA
# custom:
#   proof: each command has the list of its patterns, or another requirement refuses it
_met(section) := {number |
	some command in input.commands
	some pattern in command.patterns
	some number in rules.meeting(input.context.policy, input.call.tool, section, pattern, tool_commands.kind(command.id))
}

# The rule or approved prefix that allows each portion of the call; defined only if there is one for every portion.
#
# METADATA
# custom:
#   proof: a portion that nothing allows is missing here, and the counts are compared
admitting := found if {
	found := [admitted | some portion in portions; admitted := _admitted(portion)]
	count(found) == count(portions)
}

_admitted(portion) := {"rule": rules.name(input.context.policy, "allow", number), "basis": "rule"} if {
	number := _rule_for(portion)
}

# METADATA
# custom:
#   proof: a portion that a rule allows needs no approved prefix; each way is complete without the other
_admitted(portion) := {"rule": concat(":", ["prefix", id]), "basis": "argument_text_prefix"} if {
	not _rule_for(portion)
	tools.visible(input.context, input.call.tool)
	id := prefixes.approved(portion.command)
	_besides_command_allowed(portion)
}

_rule_for(portion) := rules.first_allowing(input.context.policy, input.call.tool, _to_cover(portion)) if {
	tools.principal_admitted(input.context)
}

# The deciding section, the rule as `<ruleset>/<id>` or `prefix:<id>`, and the basis of an allow.
#
# METADATA
# custom:
#   proof: a section counts only if the sections before it were complete and have no match
decided := {"section": "deny", "rule": rules.name(input.context.policy, "deny", min(denying))} if {
	count(denying) > 0
} else := {"section": "confirm", "rule": rules.name(input.context.policy, "confirm", min(confirming))} if {
	count(denying) == 0
	count(confirming) > 0
} else := {"section": "allow", "rule": concat(", ", {one.rule | some one in admitting}), "basis": _basis} if {
	_undisputed
	is_array(admitting)
}

# METADATA
# custom:
#   proof: it is read only where every portion is allowed, and an approved prefix anywhere is named
default _basis := "rule"

_basis := "argument_text_prefix" if {
	some one in admitting
	one.basis == "argument_text_prefix"
}

_undisputed if {
	count(denying) == 0
	count(confirming) == 0
}

# METADATA
# custom:
#   proof: text that is not canonical is left out here, and other requirements refuse it; ids and values are whole
_aspects := ((({"always"} | hosts) | paths) | commands) | touched if {
	is_array(words.hosts)
	is_array(words.paths)
	is_array(input.commands)
	is_array(input.call.touches)
	is_array(data.policy.tool_lookup.path_patterns)
	is_array(data.policy.tool_lookup.host_paths)
	is_array(data.policy.tool_lookup.ranges)
	every command in input.commands {
		is_string(command.id)
	}
	is_array(input.values)
	every value in input.values {
		tool_values.whole(value)
	}
	hosts := {aspect | some host in words.hosts; some aspect in words.refused(host)}
	paths := {aspect | some path in words.paths; some aspect in _of_path(path)}
	commands := {aspect |
		some command in input.commands
		some aspect in aspects.of_command_refused(command, input.context)
	}
	touched := aspects.of_touched_paths(input.call.touches, input.context) | aspects.unplaced(input.call)
}

# METADATA
# custom:
#   proof: a path is that of a change unless it is in a command that is shown to keep its files
_of_path(path) := aspects.as_named(path.command, found) if {
	found := aspects.of_path_refused(path, input.context)
} else := aspects.of_path_refused(path, input.context)

# The parts of a call that one rule has to cover each: every command with its own hosts and paths, and with those
# that are in no command. A call without commands is one portion.
#
# METADATA
# custom:
#   proof: each host and path is in the portion of its command or in all; without complete lists, there are none
portions := [{"hosts": words.to_cover, "paths": words.paths, "commands": []}] if {
	_complete
	input.commands == []
} else := [portion |
	some command in input.commands
	portion := {
		"hosts": [host | some host in words.to_cover; _in(host, command)],
		"paths": [path | some path in words.paths; _in(path, command)],
		"commands": [command],
		"command": command,
	}
] if {
	_complete
	count(input.commands) == count({command.id | some command in input.commands})
}

# METADATA
# custom:
#   proof: what names a command that is not there would be in no portion, so nothing is defined then
_complete if {
	is_array(input.commands)
	is_array(input.values)
	ids := {command.id | some command in input.commands}
	every one in array.concat(input.destinations, input.paths) {
		_placed(one, ids)
	}
}

_placed(one, ids) if one.command in ids

# METADATA
# custom:
#   proof: what is in no command is in every portion
_placed(one, _) if not one.command

_in(one, command) if one.command == command.id

# METADATA
# custom:
#   proof: what is in no command is in every portion
_in(one, _) if not one.command

# A portion as the aspects by which an allow rule may cover its hosts, paths, command, and the values of the call.
#
# METADATA
# custom:
#   proof: text that is not canonical is left out, and then the counts differ
_to_cover(portion) := {"hosts": hosts, "paths": paths, "commands": commands, "values": tool_values.to_cover} if {
	hosts := [words.allowed(host) | some host in portion.hosts]
	paths := [(aspects.of_path(path) | aspects.of_cwd(path, input.context)) | some path in portion.paths]
	commands := [aspects.of_command(command, input.context) | some command in portion.commands]
	count(hosts) == count(portion.hosts)
	count(paths) == count(portion.paths)
	count(commands) == count(portion.commands)
}

# The hosts and paths of a portion, without the words of its approved prefix, need an allow rule.
#
# METADATA
# custom:
#   proof: each host counts unless a valid prefix contains it
_besides_command_allowed(portion) if {
	hosts := [host | some host in portion.hosts; not prefixes.approved_word(host)]
	_covered_or_none({"hosts": hosts, "paths": portion.paths, "commands": []})
}

# METADATA
# custom:
#   proof: nothing is left to cover only if there are neither hosts and paths nor values
_covered_or_none(besides) if {
	besides == {"hosts": [], "paths": [], "commands": []}
	tool_values.to_cover == []
}

_covered_or_none(besides) if {
	is_number(rules.first_allowing(input.context.policy, input.call.tool, _to_cover(besides)))
}

# The commands that a rule or an approved prefix allows, by their ids.
#
# METADATA
# custom:
#   proof: a portion that nothing allows is missing
admitted_commands contains portion.command.id if {
	some portion in portions
	is_object(_admitted(portion))
}
