package admission.requirements.subagent.tool

import data.admission.lib.subagent
import data.admission.lib.tool_rules as rules
import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: The tool policy grants the operation
# description: Each operation is a tool, denied unless the policy grants it.
# custom:
#   code: denied_by_default
#   after: [operation_not_admitted, tool_not_in_profile]
#   remedy: Name a tool policy that grants this operation, or ask the owner of policy/tools.yaml
#   reads: ["subagents.operations.{operation}", "tools.policies.{asked.policy}"]
# labels:
#   row: B14
granted if tools.outcome_by_name(input.asked, subagent.row(input.operation).tool) in {"allow", "confirm"}

granted if {
	some number in rules.matching(input.asked.policy, subagent.row(input.operation).tool, "deny", {"always"})
	is_number(number)
}

# METADATA
# title: No deny rule matches the operation
# description: A deny rule overrides any grant.
# custom:
#   code: denied_by_rule
#   after: [operation_not_admitted, tool_policy_unknown, tool_policy_principal, tool_not_in_profile, denied_by_default]
#   remedy: Avoid the operation, or ask the owner of policy/tools.yaml
#   reads: ["subagents.operations.{operation}", "tools.policies.{asked.policy}"]
# labels:
#   row: B21
no_deny_rule if tools.outcome_by_name(input.asked, subagent.row(input.operation).tool) in {"allow", "confirm"}

# METADATA
# title: The tool policy grants the operation without confirmation
# description: If a rule or the base of the policy requires confirmation, a person approves exactly this operation.
# custom:
#   code: confirmation_by_default
#   standing: confirm
#   after: [operation_not_admitted, tool_not_in_profile, denied_by_default, denied_by_rule]
#   remedy: Have a person approve this operation with `engine approvals grant`, then repeat it with the approval
#   reads: ["subagents.operations.{operation}", "tools.policies.{asked.policy}"]
# labels:
#   row: B14
unasked if tools.outcome_by_name(input.asked, subagent.row(input.operation).tool) == "allow"

# METADATA
# title: The agent's profile includes the operation
# description: A profile only narrows what the tool policy grants; without a profile there are no tools.
# custom:
#   code: tool_not_in_profile
#   after: [operation_not_admitted]
#   remedy: Use a profile that has the tool of this operation
#   reads: ["subagents.operations.{operation}", "tools.profiles.{asked.profile}"]
# labels:
#   row: B14
profiled if tools.in_profile(input.asked, subagent.row(input.operation).tool)

# METADATA
# title: The named tool policy exists
# description: Without a policy, or with an unknown one, deny_all applies; an unknown name is reported.
# custom:
#   code: tool_policy_unknown
#   remedy: Name a policy that is listed in policy/tools.yaml
#   proof: without a policy denied_by_default or tool_not_in_profile refuses
# labels:
#   row: B14
policy_known if tools.policy_known(input.asked)

policy_known if not input.asked.policy

# METADATA
# title: The caller may use this tool policy
# description: A policy lists the principals that may use it. For all others, deny_all applies.
# custom:
#   code: tool_policy_principal
#   fixed: true
#   after: [tool_policy_unknown]
#   remedy: Name a policy that this principal may use, or ask the owner of policy/tools.yaml
#   reads: ["tools.policies.{asked.policy}.principals"]
#   proof: without a policy denied_by_default or tool_not_in_profile refuses
# labels:
#   row: B14
principal_admitted if tools.principal_admitted(input.asked)

principal_admitted if not input.asked.policy
