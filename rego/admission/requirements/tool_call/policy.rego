package admission.requirements.tool_call.policy

import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: The tool policy of the call exists
# description: Without a policy, or with an unknown one, deny_all applies; an unknown name is reported.
# custom:
#   code: tool_policy_unknown
#   remedy: Name a policy that is listed in policy/tools.yaml
#   reads: ["tools.policies.{context.policy}"]
#   proof: without a policy denied_by_default refuses
# labels:
#   row: B03
policy_known if tools.policy_known(input.context)

policy_known if not input.context.policy

# METADATA
# title: The caller may use this tool policy
# description: A policy lists the principals that may use it. For all others, deny_all applies.
# custom:
#   code: tool_policy_principal
#   fixed: true
#   remedy: Name a policy that this principal may use, or ask the owner of policy/tools.yaml
#   reads: ["tools.policies.{context.policy}.principals"]
#   after: [tool_policy_unknown]
#   proof: without a policy denied_by_default refuses
# labels:
#   row: B03
principal_admitted if tools.principal_admitted(input.context)

principal_admitted if not input.context.policy
