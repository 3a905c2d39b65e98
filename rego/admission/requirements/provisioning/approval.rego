package admission.requirements.provisioning.approval

import future.keywords.not

# METADATA
# title: A person has approved exactly this specification
# description: Each new agent waits for the approval of its system prompt, tools and constraints. Specifications that
#   are approved for good are listed by digest in policy/provisioning.yaml.
# custom:
#   code: provisioning_unapproved
#   standing: confirm
#   remedy: Have a person read the specification in the record and approve it with `engine approvals grant`
#   facts: {digest: digest}
#   reads: [provisioning.approved]
#   after: [provisioning_schema_invalid]
# labels:
#   row: E13, E34
approved if {
	is_object(input.specification)
	input.digest in data.policy.provisioning.approved
}

# METADATA
# title: The number of active agents is below the maximum
# description: The maximum is a value in policy/provisioning.yaml. An agent is active until it is ended.
# custom:
#   code: MaxAgentsExceededError
#   fixed: true
#   remedy: End an agent with `engine agent end`, or have max_agents raised in policy/provisioning.yaml
#   reads: [provisioning.max_agents]
# labels:
#   row: E23
few_agents if {
	is_array(input.agents)
	is_number(data.policy.provisioning.max_agents)
	count(input.agents) < data.policy.provisioning.max_agents
}
