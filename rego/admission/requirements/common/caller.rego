package admission.requirements.common.caller

import future.keywords.not

# METADATA
# title: Whoever asks may ask at this point
# description: A scoped token names its points, or those it may approve at, a client certificate has
#   them in policy/callers.yaml, and ways of
#   asking that need no such list are named there.
# custom:
#   code: caller_out_of_scope
#   fixed: true
#   remedy: Use a token whose scope has this point, or ask whoever decides on policy/callers.yaml
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
