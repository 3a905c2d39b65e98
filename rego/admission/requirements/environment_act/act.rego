package admission.requirements.environment_act.act

import future.keywords.not

# METADATA
# title: The engine holds the environment open
# description: What can be restored is known only of an environment that this engine has opened. No request can state
#   it.
# custom:
#   code: environment_not_held
#   fixed: true
#   remedy: Open the environment first, with `engine environment` or `Engine.open_environment`
# labels:
#   row: A08
held if is_string(input.held.environment)

# METADATA
# title: The act is admitted for this environment
# description: The acts of each environment are values in policy/environments.yaml.
# custom:
#   code: act_not_admitted
#   after: [environment_not_held]
#   facts: {act: act}
#   remedy: Use an act that policy/environments.yaml lists for the environment, or ask for this one there
#   reads: ["environments.environments.{held.environment}.acts"]
# labels:
#   row: A08
act_admitted if input.act in data.policy.environments.environments[input.held.environment].acts

# METADATA
# title: The state to go back to is held and unchanged
# description: The engine compares the digest of the file that would be restored with the one it logged. To keep the
#   current state, nothing needs to be held.
# custom:
#   code: state_not_held
#   fixed: true
#   after: [environment_not_held]
#   facts: {checkpoint: checkpoint}
#   remedy: Name a checkpoint that `engine environment show` lists, or build the environment again
# labels:
#   row: A08
state_held if input.act == "checkpoint"

state_held if {
	input.act == "restore"
	is_string(input.checkpoint)
	input.held.restorable == true
}

state_held if {
	input.act == "reset"
	input.held.reset == true
}
