# The subject of an administrative act, and the decision points at which the caller may approve.
package admission.lib.administration

import future.keywords.not

subjects := {
	"grant_approval": "approval",
	"refuse_approval": "approval",
	"issue_token": "token",
	"revoke_token": "token",
	"approve_prefix": "prefix",
	"revoke_prefix": "prefix",
	"stop": "stop",
	"lift_stop": "stop",
	"end_agent": "agent",
	"approve_release": "release",
	"leave_agreement": "agreement",
}

about(subject) if subjects[input.act] == subject

# An act on something that exists issues nothing.
gives_nothing if input.act in {
	"grant_approval",
	"refuse_approval",
	"revoke_token",
	"revoke_prefix",
	"lift_stop",
	"end_agent",
	"leave_agreement",
}

# The decision point that the act affects. A token needs the scope to approve there.
approving_at := input.approval.point if about("approval")

approving_at := "tool_call" if about("prefix")

approving_at := "administration" if about("stop")

approving_at := "administration" if about("release")

approving_at := "administration" if about("agreement")

approving_at := "provisioning" if about("agent")
