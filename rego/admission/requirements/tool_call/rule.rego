package admission.requirements.tool_call.rule

import data.admission.lib.tool_call
import future.keywords.not

# METADATA
# title: No deny rule matches the call
# description: Deny rules come first. A rule without host, path or command refuses the tool; any other refuses a call
#   with a host, path or command that it covers, anywhere in the arguments.
# custom:
#   code: denied_by_rule
#   remedy: Remove what the rule names, name the working folder (`cwd`) if the call has none, or ask the owner of
#     policy/tools.yaml; `engine tools explain` names the rule
#   reads: ["tools.policies.{context.policy}"]
#   after: [denied_by_default]
# labels:
#   row: B07, B08, C67
no_deny_rule if count(tool_call.denying) == 0

# METADATA
# title: No confirm rule matches the call
# description: Confirm rules come before allow rules and match like deny rules.
# custom:
#   code: confirmation_by_rule
#   standing: confirm
#   remedy: Have a person approve this call with `engine approvals grant`, then repeat it with the approval
#   reads: ["tools.policies.{context.policy}"]
#   after: [denied_by_rule]
# labels:
#   row: B07, B08
no_confirm_rule if count(tool_call.confirming) == 0
