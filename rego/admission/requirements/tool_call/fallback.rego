package admission.requirements.tool_call.fallback

import data.admission.lib.tool_call
import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: An allow rule covers the call, or the policy sends unmatched calls to a person
# description: Under deny_all and deny_all_visible, an allow rule must cover all hosts, paths and commands of a call.
#   An approved prefix can allow commands instead. Prefixes compare the text of the arguments only and guarantee
#   nothing about the program that runs.
# custom:
#   code: denied_by_default
#   remedy: Name a policy that grants the call, or ask for an allow rule in policy/tools.yaml that covers all of it
#   reads: ["tools.policies.{context.policy}"]
#   after: [tool_unknown]
# labels:
#   row: B02, B05, B09, B10, B46
decided if tool_call.decided.section in {"deny", "confirm", "allow"}

decided if tools.base(input.context) == "confirm_all"

# METADATA
# title: An allow rule covers the call
# description: Under confirm_all, a person decides on calls that no rule matches. A prefix approved for this
#   principal, tool and working folder can allow a command. Prefixes compare the text of the arguments only and
#   guarantee nothing about the program that runs.
# custom:
#   code: confirmation_by_default
#   standing: confirm
#   remedy: Have a person approve this call with `engine approvals grant`, or ask for an allow rule that covers it
#   reads: ["tools.policies.{context.policy}"]
#   after: [confirmation_by_rule]
# labels:
#   row: B04, B09, B10, B46
decided_by_rule if tool_call.decided.section in {"deny", "confirm", "allow"}
