package admission.requirements.tool_call.rule

import data.admission.lib.tool_call
import future.keywords.not

# METADATA
# title: No deny rule speaks against the call
# description: Deny rules come first. One that names no host, path or command refuses the tool; the others refuse a call
#   that holds some host, path or command which they cover, wherever it stands in the arguments.
# custom:
#   code: denied_by_rule
#   remedy: Leave out what the rule names, or ask whoever decides on policy/tools.yaml; `engine tools explain` names it
#   reads: ["tools.policies.{asked.policy}"]
#   after: [tool_unknown, denied_by_default]
# labels:
#   row: B07, B08, C67
no_deny_rule if count(tool_call.denying) == 0

# METADATA
# title: No rule asks that a person approves the call
# description: Confirm rules come before allow rules, and match as deny rules do.
# custom:
#   code: confirmation_by_rule
#   standing: confirm
#   remedy: Let a person approve exactly this call with `engine approvals grant`, then ask again with the approval
#   reads: ["tools.policies.{asked.policy}"]
#   after: [tool_unknown, denied_by_rule, denied_by_default]
# labels:
#   row: B07, B08
no_confirm_rule if count(tool_call.confirming) == 0
