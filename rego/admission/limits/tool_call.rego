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
	"side_effects": data.policy.tools.tools[input.call.tool].side_effects,
	"record_side_effect": true,
	"rule": _admitted.rule,
	"basis": _admitted.basis,
}

# METADATA
# custom:
#   proof: a call that no rule matches requires the approval of a person
_admitted := tool_call.decided if {
	tool_call.decided.section == "allow"
} else := {"rule": tool_call.decided.rule, "basis": "approval"} if {
	tool_call.decided.section == "confirm"
} else := {"rule": concat("/", ["base", tools.base(input.context)]), "basis": "approval"} if {
	not tool_call.decided.section
	tools.base(input.context) == "confirm_all"
}
