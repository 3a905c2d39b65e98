package admission.requirements.subagent.tool

import data.admission.lib.subagent
import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: The tool policy grants the operation
# description: Each operation is a tool like any other, and denied where no policy grants it. A policy can take one
#   of them away.
# custom:
#   code: denied_by_default
#   after: [operation_not_admitted]
#   remedy: Use a tool policy that grants the tool of this operation, or ask whoever decides on policy/tools.yaml
#   reads: ["subagents.operations.{operation}", "tools.policies.{asked.policy}"]
# labels:
#   row: B14, B21
granted if {
	tools.outcome_by_name(input.asked, subagent.row(input.operation).tool) in {"allow", "confirm"}
}

# METADATA
# title: The tool policy grants the operation without asking a person
# description: Where it does not, a person decides on exactly this operation.
# custom:
#   code: confirmation_by_default
#   after: [operation_not_admitted, denied_by_default]
#   remedy: Have it approved, or use a tool policy that grants the tool of this operation
#   reads: ["subagents.operations.{operation}", "tools.policies.{asked.policy}"]
# labels:
#   row: B21
unasked if tools.outcome_by_name(input.asked, subagent.row(input.operation).tool) == "allow"

# METADATA
# title: The profile has the operation
# description: A profile only narrows what the tool policy grants; a call without one has no tools.
# custom:
#   code: tool_not_in_profile
#   after: [operation_not_admitted]
#   remedy: Use a profile that has the tool of this operation
#   reads: ["subagents.operations.{operation}", "tools.profiles.{asked.profile}"]
# labels:
#   row: B14
profiled if tools.in_profile(input.asked, subagent.row(input.operation).tool)
