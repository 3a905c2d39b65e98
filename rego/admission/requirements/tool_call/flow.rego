package admission.requirements.tool_call.flow

import future.keywords.not

# METADATA
# custom:
#   proof: the engine itself lists what a tool of policy/tools.yaml touches; without the list nothing holds
_adds_nothing if input.adds == []

# METADATA
# title: A call that reads untrusted or private data, or sends something out, names its run
# description: What a run has touched is counted by its id. Without one, it is not known what was touched before.
# custom:
#   code: run_unnamed
#   standing: confirm
#   remedy: Name the run, as `run` of the context, in X-Run-ID or with --run, or have a person approve this call
#   reads: ["tools.tools.{call.tool}"]
#   after: [tool_unknown]
# labels:
#   row: B07
#   threat: injection
run_named if _adds_nothing

run_named if {
	count(input.flows) == 1
	is_string(input.flows[0].id)
	is_array(input.flows[0].touched)
}

# METADATA
# title: A run touches only what may be touched together
# description: Untrusted text can make an agent send private data out. Each list under `flows` in
#   policy/tools.yaml states what one run may touch together. A call that would go beyond all of them waits for a
#   person; what the run has already touched is not asked about again.
# custom:
#   code: flow_not_admitted
#   standing: confirm
#   remedy: Have a person approve this call with `engine approvals grant`, or do it in another run
#   reads: [tools.flows, "tools.tools.{call.tool}"]
#   after: [run_unnamed]
#   proof: what the call adds and what the run has touched are checked to be lists
# labels:
#   row: B07
#   threat: injection
flow_admitted if _adds_nothing

flow_admitted if {
	is_array(input.adds)
	is_array(input.flows[0].touched)
	every kind in input.adds { kind in input.flows[0].touched }
}

flow_admitted if {
	is_array(input.adds)
	is_array(input.flows[0].touched)
	some together in data.policy.tools.flows
	every kind in input.adds { kind in together }
	every kind in input.flows[0].touched { kind in together }
}
