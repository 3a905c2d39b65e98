package admission.requirements.runner_request.permission

import future.keywords.not

# METADATA
# title: The permission policy that the run states is one we admit
# description: It says who permits the calls of tools, whatever the sandbox holds. The words are values in
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
# title: Whatever calls the run can make are under a permission policy
# description: A pass of the sandbox says nothing about a call that goes out of it. Without a stated policy the calls
#   would fall back to a default that the caller may not have meant.
# custom:
#   code: tool_permission_missing
#   each: carried
#   empty: allowed
#   after: [uri_not_allowlisted, permission_policy_not_admitted]
#   remedy: State permission_policy in agent
# labels:
#   row: D18
permitted(item) if {
	is_string(item.kind)
	input.agent.permission_policy_stated == true
	is_string(input.agent.permission_policy)
}
