# The specification that may be mounted, and how many agents may be active then.
package admission.limits.provisioning

import future.keywords.not

limits := {"specification": input.digest, "max_agents": data.policy.provisioning.max_agents} if {
	is_string(input.digest)
	is_number(data.policy.provisioning.max_agents)
}
