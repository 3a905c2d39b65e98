package admission.requirements.common.approval

import data.admission.lib.approval
import future.keywords.not

# METADATA
# title: The approval is one that was asked for here
# description: An approval is known by the id that a confirm gave; what else a caller states about it does not count.
# custom:
#   code: approval_unknown
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Use the approval id of a decision of this engine, or ask without one to get a new one
# labels:
#   row: H22
known(given) if given.state in {"requested", "granted", "refused", "used"}

# METADATA
# title: Somebody has decided on the approval
# description: Until then nothing runs.
# custom:
#   code: approval_pending
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Wait until it is granted with `engine approvals grant`, then ask again
#   after: [approval_unknown]
decided(given) if given.state in {"granted", "refused", "used"}

# METADATA
# title: The approval was granted
# description: A person who refuses ends the matter for this request.
# custom:
#   code: approval_refused
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Read the reason with `engine approvals show`, and change the request
#   after: [approval_unknown]
not_refused(given) if given.state in {"requested", "granted", "used"}

# METADATA
# title: The approval was not used before
# description: An approval is for one decision; a replayed one is none.
# custom:
#   code: approval_used
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Ask without an approval to get a new one
#   after: [approval_unknown]
unused(given) if given.state in {"requested", "granted", "refused"}

# METADATA
# title: The approval was given for exactly this request
# description: It is bound to the digest of the input, which covers the caller and every argument.
# custom:
#   code: approval_input_changed
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Send the request that was approved, or ask for an approval of this one
#   after: [approval_unknown]
same_input(given) if approval.for_this_input(given)

# METADATA
# title: The approval was given under the policy that is in force
# description: Whoever approved did so knowing other rules or values.
# custom:
#   code: approval_policy_changed
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Ask without an approval to get a new one under the policy in force
#   after: [approval_unknown]
same_policy(given) if approval.under_this_policy(given)

# METADATA
# title: The approval has not expired
# description: How long it holds is a value in policy/approvals.yaml.
# custom:
#   code: approval_expired
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Ask without an approval to get a new one
#   after: [approval_unknown]
in_time(given) if approval.in_time(given)

# METADATA
# title: The approver is another person than the requester
# description: Names are compared exactly. A caller without a name needs its way of asking in policy/approvals.yaml.
# custom:
#   code: approval_by_requester
#   fixed: true
#   each: approvals
#   empty: allowed
#   remedy: Let another person approve; a caller without a name asks with a token of `engine tokens issue`
#   reads: [approvals.unnamed_requesters]
#   after: [approval_unknown, approval_pending]
by_another(given) if approval.by_another(given)
