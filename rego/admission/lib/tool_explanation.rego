# Why the call in the input is decided as it is, for people: what shows the tool, what decides, what no rule covers.
package admission.lib.tool_explanation

import data.admission.lib.tool_aspects as aspects
import data.admission.lib.tool_call
import data.admission.lib.tool_rules as rules
import data.admission.lib.tool_words as words
import data.admission.lib.tools
import future.keywords.not

# METADATA
# custom:
#   proof: it is told to people, and no requirement asks for it
explanation := {
	"visible": ({"shown", "profile"} - held) == set(),
	"base": tools.base(input.asked),
	"policy_known": "policy" in held,
	"in_profile": "profile" in held,
	"section": _decided.section,
	"rule": _decided.rule,
	"basis": _decided.basis,
	"uncovered": {
		"destinations": [one.id | some one in words.counted; not _covered(words.allowed(one))],
		"paths": [one.id | some one in input.paths; not _covered(aspects.path(one))],
		"commands": [one.id | some one in input.commands; not _covered(aspects.command(one))],
	},
	"needs": [need | some need in _needs; not need in held],
} if {
	held := {name | some name in (_needs | {"shown"}); _holds(name)}
}

# What has to be there for a call to be allowed, each a thing that somebody can change.
_needs := {"tool", "policy", "principal", "profile", "no_deny_rule", "no_confirm_rule", "allow_rule"}

_holds("tool") if tools.known(input.call.tool)

_holds("policy") if tools.policy_known(input.asked)

_holds("principal") if tools.principal_admitted(input.asked)

_holds("profile") if tools.in_profile(input.asked, input.call.tool)

_holds("shown") if tools.shown(input.asked, input.call.tool)

_holds("no_deny_rule") if count(tool_call.denying) == 0

_holds("no_confirm_rule") if count(tool_call.confirming) == 0

_holds("allow_rule") if is_number(tool_call.allowing)

_holds("allow_rule") if is_string(tool_call.approved)

_covered(found) if rules.some_covering(input.asked.policy, input.call.tool, found)

# METADATA
# custom:
#   proof: it is told to people, and no requirement asks for it
_decided := object.union({"basis": null}, tool_call.decided)

_decided := {"section": "none", "rule": null, "basis": null} if not tool_call.decided
