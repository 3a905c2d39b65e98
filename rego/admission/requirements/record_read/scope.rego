package admission.requirements.record_read.scope

import future.keywords.not

# METADATA
# title: The caller may read these decisions
# description: A caller with a name may read the decisions on its own requests. Who may read everyone's are values in
#   policy/callers.yaml.
# custom:
#   code: record_read_out_of_scope
#   fixed: true
#   remedy: Use a token of your own and whose=own, or ask the owner of policy/callers.yaml
#   reads: [callers.read_all]
# labels:
#   row: D31
readable if {
	input.whose == "own"
	is_string(input.caller.principal)
	input.caller.principal != ""
}

readable if {
	input.whose == "all"
	input.caller.via in data.policy.callers.read_all.via
}

readable if {
	input.whose == "all"
	is_string(input.caller.principal)
	input.caller.principal in data.policy.callers.read_all.principals
}
