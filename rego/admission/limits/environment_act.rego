# Exactly this act, in this environment.
package admission.limits.environment_act

import future.keywords.not

limits := {"environment": input.held.environment, "act": input.act} if {
	is_string(input.held.environment)
	is_string(input.act)
}
