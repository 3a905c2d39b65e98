package admission.requirements.runner_request.permission

import future.keywords.not

# METADATA
# title: The permission policy of the run is admitted
# description: It determines who permits tool calls, whatever the sandbox enforces. Permission policies are values in
#   policy/runners.yaml.
# custom:
#   code: permission_policy_not_admitted
#   remedy: State a permission policy that is listed in policy/runners.yaml
#   reads: [runners.permission_policies]
# labels:
#   row: D18, D45
policy_admitted if input.agent.permission_policy_stated == false

policy_admitted if {
	input.agent.permission_policy_stated == true
	input.agent.permission_policy in data.policy.runners.permission_policies
}

# METADATA
# title: A run that can make calls has a permission policy
# description: A sandbox does not control calls that leave it. Without a stated policy, the calls would use a default
#   that the caller may not have intended.
# custom:
#   code: tool_permission_missing
#   each: attached
#   empty: allowed
#   after: [uri_not_allowlisted, permission_policy_not_admitted]
#   remedy: "State `permission_policy` in `agent`, one of `permission_policies` in policy/runners.yaml"
# labels:
#   row: D18
permitted(item) if {
	is_string(item.kind)
	input.agent.permission_policy_stated == true
	is_string(input.agent.permission_policy)
}
