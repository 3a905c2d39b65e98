package admission.requirements.administration.prefix

import data.admission.lib.administration
import data.admission.lib.approval
import future.keywords.not

_approves_none if administration.gives_nothing

_approves_none if input.act in {"issue_token", "stop", "approve_release"}

# METADATA
# title: The approver of a command prefix is not the principal who may run it
# description: Names are compared exactly.
# custom:
#   code: prefix_approver_is_runner
#   fixed: true
#   remedy: Have another person approve
# labels:
#   row: H08
approver_differs if _approves_none

approver_differs if {
	input.act == "approve_prefix"
	approval.differ(input.prefix.principal, input.caller.principal)
}

# METADATA
# title: The lifetime of a command prefix is within its limit
# description: The maximum lifetime is a value in policy/administration.yaml.
# custom:
#   code: prefix_too_long
#   fixed: true
#   remedy: Approve it for fewer days; prefix_seconds_max in policy/administration.yaml is the limit
#   reads: [administration.prefix_seconds_max]
# labels:
#   row: H08
prefix_ends if _approves_none

prefix_ends if {
	input.act == "approve_prefix"
	is_number(input.prefix.seconds)
	input.prefix.seconds > 0
	input.prefix.seconds <= data.policy.administration.prefix_seconds_max
}

# METADATA
# title: The tool of a command prefix is known and takes commands
# description: A prefix for any other name would have no effect now, and might get one later.
# custom:
#   code: prefix_tool_unknown
#   fixed: true
#   remedy: Use the name of a tool in policy/tools.yaml that has an argument of type `command`, `argv` or `data`
#   reads: ["tools.tools.{prefix.tool}"]
# labels:
#   row: H08
tool_known if _approves_none

tool_known if {
	input.act == "approve_prefix"
	some kind in data.policy.tools.tools[input.prefix.tool].arguments
	kind in {"argv", "command", "data"}
}
