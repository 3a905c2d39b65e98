package admission.requirements.administration.approval

import data.admission.lib.administration
import data.admission.lib.approval
import future.keywords.not

_not_about_approvals if administration.about("token")

_not_about_approvals if administration.about("prefix")

# METADATA
# title: The request for approval is open
# description: It is decided once, and stays as it was decided.
# custom:
#   code: approval_resolved
#   fixed: true
#   remedy: Look at it with `engine approvals show`; a new request for approval comes from asking again
request_open if _not_about_approvals

request_open if {
	administration.about("approval")
	input.approval.state == "requested"
}

# METADATA
# title: The request for approval has not expired
# description: How long it holds is a value in policy/approvals.yaml.
# custom:
#   code: approval_overdue
#   fixed: true
#   remedy: Ask for the decision again, and have the new request for approval decided in time
request_in_time if _not_about_approvals

request_in_time if {
	administration.about("approval")
	approval.in_time(input.approval)
}

# METADATA
# title: The approver is another person than the requester
# description: Names are compared exactly; the requester may refuse its own request. A requester without a name
#   needs its way of asking in policy/approvals.yaml.
# custom:
#   code: approver_is_requester
#   fixed: true
#   remedy: Let another person approve; a caller without a name asks with a token of `engine tokens issue`
#   reads: [approvals.unnamed_requesters]
approver_differs if _not_about_approvals

approver_differs if input.act == "refuse_approval"

approver_differs if {
	input.act == "grant_approval"
	approval.differ(input.approval.requester, input.caller.principal)
}

approver_differs if {
	input.act == "grant_approval"
	approval.unnamed_requester(input.approval)
	approval.plain_name(input.caller.principal)
}
