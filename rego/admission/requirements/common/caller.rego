package admission.requirements.common.caller

import future.keywords.not

# METADATA
# title: The caller may ask at this point
# description: A scoped token lists the points at which it may ask or approve. policy/callers.yaml lists the points of
#   client certificates, and the ways to connect that need no list.
# custom:
#   code: caller_out_of_scope
#   fixed: true
#   remedy: Use a token with this point in its scope, or have policy/callers.yaml list this point with the subject of
#     the certificate under `certificates`, or this way to connect under `unscoped`
#   reads: [callers.unscoped, callers.certificates]
# labels:
#   row: H22
caller_in_scope if input.caller.via in data.policy.callers.unscoped

caller_in_scope if {
	input.caller.via == "token"
	input.point in input.caller.points
}

caller_in_scope if {
	input.caller.via == "token"
	input.point == "administration"
	is_array(input.caller.approves)
	count(input.caller.approves) > 0
}

caller_in_scope if {
	input.caller.via == "certificate"
	input.point in data.policy.callers.certificates[input.caller.principal]
}
