package admission.requirements.administration.approval

import data.admission.lib.administration
import data.admission.lib.approval
import future.keywords.not

_not_about_approvals if administration.subjects[input.act] in {"token", "prefix", "stop", "agent", "agreement"}

# METADATA
# title: The approval request is open
# description: An approval request is decided once.
# custom:
#   code: approval_resolved
#   fixed: true
#   remedy: See `engine approvals show`; repeat the request to get a new approval request
# labels:
#   row: H09
request_open if _not_about_approvals

request_open if administration.about("release")

request_open if {
	administration.about("approval")
	input.approval.state == "requested"
}

# METADATA
# title: The approval request has not expired
# description: Its lifetime is a value in policy/approvals.yaml.
# custom:
#   code: approval_overdue
#   fixed: true
#   remedy: Repeat the request, and have the new approval request decided in time
# labels:
#   row: H09
request_in_time if _not_about_approvals

request_in_time if administration.about("release")

request_in_time if {
	administration.about("approval")
	approval.in_time(input.approval)
}

# METADATA
# title: The approver is not the requester
# description: Names are compared exactly. The author of a release is its requester. Requesters may refuse their own
#   requests. Which callers may lack a name is
#   a value in policy/approvals.yaml.
# custom:
#   code: approver_is_requester
#   fixed: true
#   remedy: Have another person approve; callers without a name need a token from `engine tokens issue`
#   reads: [approvals.unnamed_requesters]
# labels:
#   row: H09
approver_differs if _not_about_approvals

approver_differs if input.act == "refuse_approval"

approver_differs if {
	input.act == "approve_release"
	approval.differ(input.release.author, input.caller.principal)
}

approver_differs if {
	input.act == "grant_approval"
	approval.differ(input.approval.requester, input.caller.principal)
}

approver_differs if {
	input.act == "grant_approval"
	approval.unnamed_requester(input.approval)
	approval.plain_name(input.caller.principal)
}
