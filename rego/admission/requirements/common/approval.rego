package admission.requirements.common.approval

import data.admission.lib.approval
import future.keywords.not

# METADATA
# title: The approval was requested from this engine
# description: An approval is identified only by the id that a confirm returned.
# custom:
#   code: approval_unknown
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Use an approval id that this engine returned, or repeat the request without one
# labels:
#   row: H22
known(claim) if claim.state in {"requested", "granted", "refused", "used"}

# METADATA
# title: The approval has been decided
# description: Nothing runs before the approval is decided.
# custom:
#   code: approval_pending
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Wait until it is granted with `engine approvals grant`, then repeat the request
#   after: [approval_unknown]
# labels:
#   row: H09
decided(claim) if claim.state in {"granted", "refused", "used"}

# METADATA
# title: The approval was granted
# description: A refusal is final for this request.
# custom:
#   code: approval_refused
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: See the reason with `engine approvals show`, and change the request
#   after: [approval_unknown]
# labels:
#   row: H09
not_refused(claim) if claim.state in {"requested", "granted", "used"}

# METADATA
# title: The approval was not used before
# description: An approval is valid for one decision and cannot be replayed.
# custom:
#   code: approval_used
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Repeat the request without an approval to get a new one
#   after: [approval_unknown]
# labels:
#   row: H09
unused(claim) if claim.state in {"requested", "granted", "refused"}

# METADATA
# title: The approval was given for exactly this request
# description: It is bound to the digest of the input, which covers the caller and every argument.
# custom:
#   code: approval_input_changed
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Send the approved request as the same principal, or request approval for this one
#   after: [approval_unknown]
# labels:
#   row: H09
same_input(claim) if approval.for_this_input(claim)

# METADATA
# title: The approval was given under the policy that is in force
# description: The approver decided under other rules or values.
# custom:
#   code: approval_policy_changed
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Repeat the request without an approval to get a new one under the current policy
#   after: [approval_unknown]
# labels:
#   row: H09
same_policy(claim) if approval.under_this_policy(claim)

# METADATA
# title: The approval has not expired
# description: Its lifetime is a value in policy/approvals.yaml.
# custom:
#   code: approval_expired
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Repeat the request without an approval to get a new one
#   after: [approval_unknown]
# labels:
#   row: H09
in_time(claim) if approval.in_time(claim)

# METADATA
# title: The approver is not the requester
# description: Names are compared exactly. Which callers may lack a name is a value in policy/approvals.yaml.
# custom:
#   code: approval_by_requester
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Have another person approve; callers without a name need a token from `engine tokens issue`
#   reads: [approvals.unnamed_requesters]
#   after: [approval_pending]
# labels:
#   row: H09
by_another(claim) if approval.by_another(claim)
