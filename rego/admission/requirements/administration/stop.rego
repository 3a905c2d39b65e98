package admission.requirements.administration.stop

import data.admission.lib.administration
import future.keywords.not

# METADATA
# title: Nothing is granted while everything is stopped
# description: Acts that take something away stay possible while everything is stopped, and so does lifting the stop.
# custom:
#   code: act_stopped
#   fixed: true
#   each: stops
#   empty: allowed
#   remedy: Lift the stop with `engine stop lift` first; `engine stop list` shows it
# labels:
#   row: C68
grants_nothing(stop) if stop.scope in {"tool", "principal"}

grants_nothing(stop) if {
	stop.scope == "all"
	input.act in {"stop", "lift_stop", "end_agent", "refuse_approval", "revoke_token", "revoke_prefix"}
}

# METADATA
# title: The tool to be stopped is known
# description: A tool without an entry in policy/tools.yaml is refused anyway, so a stop of it is a misspelt name.
# custom:
#   code: stop_tool_unknown
#   remedy: Use the name of a tool in policy/tools.yaml; `engine tools list` prints them
#   reads: ["tools.tools.{stop.name}"]
# labels:
#   row: C68
tool_known if administration.gives_nothing

tool_known if input.act in {"issue_token", "approve_prefix", "approve_release"}

tool_known if {
	input.act == "stop"
	input.stop.scope in {"all", "principal"}
}

tool_known if {
	input.act == "stop"
	input.stop.scope == "tool"
	is_object(data.policy.tools.tools[input.stop.name])
}
