package admission.requirements.tool_call.effect

import future.keywords.not

# METADATA
# title: A destructive call can be undone
# description: A destructive tool runs only where an environment reset or checkpoint restore can undo it. The tool's
#   entry lists the ways that work. The call states which are available, but not whether the engine holds a checkpoint.
# custom:
#   code: irreversible_destructive_action
#   remedy: Run it where the environment can be reset or a checkpoint restored, and state that in `environment`;
#     call tools of a built environment where it is open; have `side_effects` in policy/tools.yaml corrected if the
#     tool destroys nothing
#   reads: ["tools.tools.{call.tool}.reversal"]
#   after: [tool_unknown]
# labels:
#   row: A08
reversible if {
	effects := data.policy.tools.tools[input.call.tool].side_effects
	count(effects) > 0
	every effect in effects {
		effect in {"none", "read", "write", "network", "execute"}
	}
}

reversible if {
	"environment_reset" in data.policy.tools.tools[input.call.tool].reversal
	input.environment.reset == true
}

reversible if {
	"checkpoint_restore" in data.policy.tools.tools[input.call.tool].reversal
	input.environment.checkpoint == true
}

reversible if {
	"held_checkpoint" in data.policy.tools.tools[input.call.tool].reversal
	input.held.environment in data.policy.tools.tools[input.call.tool].environments
	input.held.checkpoint == true
}
