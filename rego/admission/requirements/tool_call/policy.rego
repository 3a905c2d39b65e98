package admission.requirements.tool_call.policy

import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: The tool policy that the call names is there
# description: A call that names none is under deny_all; one that names an unknown one is too, and is told so.
# custom:
#   code: tool_policy_unknown
#   remedy: Name a policy that is listed in policy/tools.yaml
#   proof: without a policy denied_by_default refuses
# labels:
#   row: B03
policy_known if tools.policy_known(input.asked)

policy_known if not input.asked.policy

# METADATA
# title: The caller may use this tool policy
# description: A policy names the principals that may ask under it. For anybody else it is deny_all.
# custom:
#   code: tool_policy_principal
#   fixed: true
#   remedy: Name a policy that this principal may use, or ask whoever decides on policy/tools.yaml
#   reads: ["tools.policies.{asked.policy}.principals"]
#   after: [tool_policy_unknown]
#   proof: without a policy denied_by_default refuses
# labels:
#   row: B03
principal_admitted if tools.principal_admitted(input.asked)

principal_admitted if not input.asked.policy
