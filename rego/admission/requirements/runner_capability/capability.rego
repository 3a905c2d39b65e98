package admission.requirements.runner_capability.capability

import future.keywords.not

# METADATA
# title: The harness can take the tools of the run
# description: A harness that takes tools over MCP only and cannot would drop them silently. Which ones take them by
#   themselves is a value in policy/runners.yaml.
# custom:
#   code: capability_missing
#   each: capabilities
#   remedy: Leave out the tools, or use a harness that can take them
#   reads: ["runners.harnesses.{harness}"]
# labels:
#   row: D38
held(capability) if {
	is_string(capability.flag)
	_unaffected
}

held(capability) if capability.held == true

# METADATA
# title: What the harness can do was probed
# description: Without a probe it is only assumed. Whether that may be relied on is a value of the profile in
#   policy/operations.yaml.
# custom:
#   code: capability_not_probed
#   remedy: Make the probe of the harness work, or use a profile that relies on what is assumed
#   reads: [operations.profile, operations.profiles]
# labels:
#   row: D39
probed if _unaffected

probed if input.source == "probed"

probed if {
	input.source == "static"
	data.policy.operations.profiles[data.policy.operations.profile].static_capabilities == true
}

_unaffected if input.tools == 0

_unaffected if data.policy.runners.harnesses[input.harness].custom_tools == "native"
