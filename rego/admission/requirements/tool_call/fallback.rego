package admission.requirements.tool_call.fallback

import data.admission.lib.tool_call
import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: A rule decides on the call, or the policy asks a person about what no rule decides
# description: Under deny_all and deny_all_visible a call needs a rule that allows all of its hosts, paths and commands.
#   Commands may be allowed by an approved prefix instead. A prefix compares the text of the arguments only; it is no
#   guarantee about the program that the system will run.
# custom:
#   code: denied_by_default
#   remedy: Name a policy that grants the call, or ask for an allow rule in policy/tools.yaml that covers all it holds
#   reads: ["tools.policies.{asked.policy}"]
#   after: [tool_unknown]
# labels:
#   row: B02, B05, B09, B10, B46
decided if tool_call.decided.section in {"deny", "confirm", "allow"}

decided if tools.base(input.asked) == "confirm_all"

# METADATA
# title: A rule decides on the call
# description: Under confirm_all a person decides on what no rule decides. A command may be allowed by a prefix that
#   somebody approved for this principal, tool and working folder. A prefix compares the text of the arguments only; it
#   is no guarantee about the program that the system will run.
# custom:
#   code: confirmation_by_default
#   standing: confirm
#   remedy: Let a person approve this call with `engine approvals grant`, or ask for an allow rule that covers it
#   reads: ["tools.policies.{asked.policy}"]
#   after: [tool_unknown, denied_by_default, denied_by_rule, confirmation_by_rule]
# labels:
#   row: B04, B09, B10, B46
decided_by_rule if tool_call.decided.section in {"deny", "confirm", "allow"}
