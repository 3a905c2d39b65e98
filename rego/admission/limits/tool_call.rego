# What the call may use, its side effects, and the rule that admitted it.
#
# The basis `argument_text_prefix` means that only the text of a command was compared, which guarantees nothing
# about the program that runs.
package admission.limits.tool_call

import data.admission.lib.tool_call
import data.admission.lib.tools
import future.keywords.not

limits := {
	"tool": input.call.tool,
	"seconds": data.policy.tools.limits.seconds,
	"result_bytes": data.policy.tools.limits.result_bytes,
	"side_effects": _side_effects,
	"record_side_effect": true,
	"rule": _admitted.rule,
	"basis": _admitted.basis,
}

# METADATA
# custom:
#   proof: a call that no rule matches requires the approval of a person, or is refused unless a level lowers that
_admitted := tool_call.decided if {
	tool_call.decided.section == "allow"
} else := {"rule": tool_call.decided.rule, "basis": "approval"} if {
	tool_call.decided.section == "confirm"
} else := {"rule": concat("/", ["base", tools.base(input.context)]), "basis": "approval"} if {
	not tool_call.decided.section
	tools.base(input.context) == "confirm_all"
} else := {"rule": _refused_by, "basis": "level"}

# What would refuse the call, if policy/levels.yaml did not lower it.
#
# METADATA
# custom:
#   proof: it only names what is refused unless a level says otherwise
_refused_by := tool_call.decided.rule if {
	tool_call.decided.section == "deny"
} else := concat("/", ["base", tools.base(input.context)])

# METADATA
# custom:
#   proof: a tool without an entry may do anything; another requirement refuses it unless a level says otherwise
_side_effects := data.policy.tools.tools[input.call.tool].side_effects if {
	is_object(data.policy.tools.tools[input.call.tool])
} else := ["read", "write", "network", "execute", "destructive"] if {
	not data.policy.tools.tools[input.call.tool]
	is_object(data.policy.tools.tools)
}
