package admission.requirements.runner_capability.capability

import future.keywords.not

# METADATA
# title: The harness supports the tools of the run
# description: A harness that takes tools only over MCP, and lacks it, would drop them silently. Harnesses with native
#   support are values in policy/runners.yaml.
# custom:
#   code: capability_missing
#   each: capabilities
#   remedy: Remove the tools, or use a harness that supports them
#   reads: ["runners.harnesses.{harness}"]
# labels:
#   row: D38
proven(capability) if {
	is_string(capability.flag)
	_unaffected
}

proven(capability) if capability.supported == true

# METADATA
# title: The capabilities of the harness were probed
# description: Without a probe they are only assumed. Whether that is accepted is a value of the profile in
#   policy/operations.yaml.
# custom:
#   code: capability_not_probed
#   remedy: Correct the harness so that its probe succeeds (docs/runner.md), or have `static_capabilities` set in the
#     profile of policy/operations.yaml, which accepts those that policy/runners.yaml assumes
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
