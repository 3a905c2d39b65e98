# Which rule of the policy denies the call, requires confirmation, or allows it.
package admission.lib.tool_call

import data.admission.lib.tool_aspects as aspects
import data.admission.lib.tool_prefixes as prefixes
import data.admission.lib.tool_rules as rules
import data.admission.lib.tool_values
import data.admission.lib.tool_words as words
import data.admission.lib.tools
import future.keywords.not

# The numbers of the deny and of the confirm rules that match; undefined unless all could be evaluated.
denying := rules.matching(input.context.policy, input.call.tool, "deny", _aspects, input.values)

confirming := rules.matching(input.context.policy, input.call.tool, "confirm", _aspects, input.values)

# The number of the first rule that allows it.
allowing := rules.first_allowing(input.context.policy, input.call.tool, to_cover) if {
	tools.principal_admitted(input.context)
}

# The approved command prefix that allows it. Destinations and paths still need a rule.
approved := prefixes.for_commands[0] if {
	tools.visible(input.context, input.call.tool)
	_besides_commands_allowed
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
} else := {"section": "allow", "rule": rules.name(input.context.policy, "allow", allowing), "basis": "rule"} if {
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
#   proof: text that is not canonical is left out here, and other requirements refuse it
_aspects := ((({"always"} | hosts) | paths) | commands) | touched if {
	is_array(words.hosts)
	is_array(input.paths)
	is_array(input.commands)
	is_array(input.call.touches)
	is_array(data.policy.tool_lookup.path_patterns)
	is_array(data.policy.tool_lookup.host_paths)
	is_array(data.policy.tool_lookup.ranges)
	is_array(input.values)
	hosts := {aspect | some host in words.hosts; some aspect in words.refused(host)}
	paths := {aspect | some path in input.paths; some aspect in aspects.of_path_refused(path, input.context)}
	commands := {aspect |
		some command in input.commands
		some aspect in aspects.of_command_refused(command, input.context)
	}
	touched := aspects.of_touched_paths(input.call.touches, input.context) | aspects.unplaced(input.call)
}

# All hosts, paths, commands and values of the call, each as the aspects by which an allow rule may cover it.
#
# METADATA
# custom:
#   proof: text that is not canonical is left out, and then the counts differ
to_cover := {"hosts": hosts, "paths": paths, "commands": commands, "values": tool_values.to_cover} if {
	is_array(words.hosts)
	is_array(input.paths)
	is_array(input.commands)
	is_array(input.values)
	hosts := [words.allowed(host) | some host in words.hosts]
	paths := [(aspects.of_path(path) | aspects.of_cwd(path, input.context)) | some path in input.paths]
	commands := [aspects.of_command(command) | some command in input.commands]
	count(hosts) == count(words.hosts)
	count(paths) == count(input.paths)
	count(commands) == count(input.commands)
}

_besides_commands_allowed if {
	count(_other_hosts) == 0
	count(to_cover.paths) == 0
	count(to_cover.values) == 0
}

_besides_commands_allowed if {
	(count(_other_hosts) + count(to_cover.paths)) + count(to_cover.values) > 0
	besides := {"hosts": _other_hosts, "paths": to_cover.paths, "commands": [], "values": to_cover.values}
	is_number(rules.first_allowing(input.context.policy, input.call.tool, besides))
}

# The hosts that no approved prefix contains as a word of its command.
#
# METADATA
# custom:
#   proof: each counts unless a valid prefix contains it, and `to_cover` is defined only if all could be read
_other_hosts := [words.allowed(host) | some host in words.hosts; not prefixes.approved_word(host)] if {
	is_array(to_cover.hosts)
}
