# The explanation of a decision on a call, for people: why the tool is visible, what decides, what no rule covers.
package admission.lib.tool_explanation

import data.admission.lib.tool_aspects as aspects
import data.admission.lib.tool_call
import data.admission.lib.tool_commands as commands
import data.admission.lib.tool_prefixes as prefixes
import data.admission.lib.tool_rules as rules
import data.admission.lib.tool_values
import data.admission.lib.tool_words as words
import data.admission.lib.tools
import future.keywords.not

# METADATA
# custom:
#   proof: the explanation is only shown to people; no requirement reads it
explanation := {
	"visible": ({"shown", "profile"} - met) == set(),
	"base": tools.base(input.context),
	"policy_known": "policy" in met,
	"in_profile": "profile" in met,
	"section": _decided.section,
	"rule": _decided.rule,
	"basis": _decided.basis,
	"uncovered": {
		"destinations": [host.id |
			some host in words.to_cover
			not _can_cover(words.allowed(host))
			not prefixes.approved_word(host)
		],
		"paths": [path.id |
			some path in words.paths
			not _can_cover(aspects.of_path(path) | aspects.of_cwd(path, input.context))
		],
		"commands": [command.id |
			some command in input.commands
			not _can_cover(aspects.of_command(command, input.context))
			not prefixes.approved(command)
		],
		"values": [name |
			some name, _ in data.policy.tool_lookup.tools[input.call.tool].values
			not _can_cover(tool_values.aspects(name))
		],
	},
	"beyond": {command.id: sort(able) |
		some command in input.commands
		able := commands.beyond(command, count(command.words))
	},
	"needs": [need | some need in _needs; not need in met],
} if {
	met := {name | some name in (_needs | {"shown"}); _met(name)}
}

# The conditions that make the call allowed, each with the value that a person can change.
_needs := {"tool", "policy", "principal", "profile", "no_deny_rule", "no_confirm_rule", "allow_rule"}

_met("tool") if tools.known(input.call.tool)

_met("policy") if tools.policy_known(input.context)

_met("principal") if tools.principal_admitted(input.context)

_met("profile") if tools.in_profile(input.context, input.call.tool)

_met("shown") if tools.visible(input.context, input.call.tool)

_met("no_deny_rule") if count(tool_call.denying) == 0

_met("no_confirm_rule") if count(tool_call.confirming) == 0

_met("allow_rule") if is_array(tool_call.admitting)

_can_cover(options) if rules.some_covering(input.context.policy, input.call.tool, options)

# METADATA
# custom:
#   proof: the explanation is only shown to people; no requirement reads it
_decided := object.union({"basis": null}, tool_call.decided)

_decided := {"section": "none", "rule": null, "basis": null} if not tool_call.decided
