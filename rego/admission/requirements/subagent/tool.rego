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
#   after: [tool_not_in_profile]
#   remedy: Name a tool policy that grants this operation, or ask for an allow rule in policy/tools.yaml
#   reads: ["subagents.operations.{operation}", "tools.policies.{context.policy}"]
# labels:
#   row: B14
granted_by_policy if tools.outcome_by_name(input.context, subagent.row(input.operation).tool) in {"allow", "confirm"}

granted_by_policy if {
	some number in rules.matching(input.context.policy, subagent.row(input.operation).tool, "deny", {"always"}, [])
	is_number(number)
}

# METADATA
# title: No deny rule matches the operation
# description: A deny rule overrides any grant.
# custom:
#   code: denied_by_rule
#   after: [tool_policy_principal, denied_by_default]
#   remedy: Avoid the operation, or ask the owner of policy/tools.yaml
#   reads: ["subagents.operations.{operation}", "tools.policies.{context.policy}"]
# labels:
#   row: B21
no_deny_rule if tools.outcome_by_name(input.context, subagent.row(input.operation).tool) in {"allow", "confirm"}

# METADATA
# title: The tool policy grants the operation without confirmation
# description: If a rule or the base of the policy requires confirmation, a person approves exactly this operation.
# custom:
#   code: confirmation_by_default
#   standing: confirm
#   after: [denied_by_rule]
#   remedy: Have a person approve this operation with `engine approvals grant`, then repeat it with the approval
#   reads: ["subagents.operations.{operation}", "tools.policies.{context.policy}"]
# labels:
#   row: B14
granted_without_asking if tools.outcome_by_name(input.context, subagent.row(input.operation).tool) == "allow"

# METADATA
# title: The agent's profile includes the operation
# description: A profile only narrows what the tool policy grants; without a profile there are no tools.
# custom:
#   code: tool_not_in_profile
#   after: [operation_not_admitted]
#   remedy: Name a profile that includes the tool of this operation, and a tool policy that grants it
#   reads: ["subagents.operations.{operation}", "tools.profiles.{context.profile}"]
# labels:
#   row: B14
in_profile if tools.in_profile(input.context, subagent.row(input.operation).tool)

# METADATA
# title: The named tool policy exists
# description: Without a policy, or with an unknown one, deny_all applies; an unknown name is reported.
# custom:
#   code: tool_policy_unknown
#   remedy: Name a policy that is listed in policy/tools.yaml
#   proof: without a policy denied_by_default or tool_not_in_profile refuses
# labels:
#   row: B14
policy_known if tools.policy_known(input.context)

policy_known if not input.context.policy

# METADATA
# title: The caller may use this tool policy
# description: A policy lists the principals that may use it. For all others, deny_all applies.
# custom:
#   code: tool_policy_principal
#   fixed: true
#   after: [tool_policy_unknown]
#   remedy: Name a policy that this principal may use, or ask the owner of policy/tools.yaml
#   reads: ["tools.policies.{context.policy}.principals"]
#   proof: without a policy denied_by_default or tool_not_in_profile refuses
# labels:
#   row: B14
principal_admitted if tools.principal_admitted(input.context)

principal_admitted if not input.context.policy
