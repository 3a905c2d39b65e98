package admission.requirements.common.stop

import future.keywords.not

# METADATA
# title: No stop applies to the request
# description: A stop of everything refuses every request, except administrative acts, which have a requirement of
#   their own, and the start of a listener, through which the stop is lifted. A stop of a tool or a principal refuses
#   what uses this tool or comes from this principal.
# custom:
#   code: stopped
#   fixed: true
#   each: stops
#   empty: allowed
#   remedy: See who stopped it, and why, with `engine stop list`; `engine stop lift` lifts it. A principal cannot lift
#     its own stop
# labels:
#   row: C68
not_stopped(stop) if {
	stop.scope == "all"
	input.point in {"administration", "runner_bind"}
}

not_stopped(stop) if {
	stop.scope == "tool"
	is_string(stop.name)
	stop.name != ""
	is_string(stop.tool)
	stop.tool != stop.name
}

not_stopped(stop) if {
	stop.scope == "principal"
	is_string(stop.name)
	stop.name != ""
	is_string(stop.principal)
	stop.principal != stop.name
}
