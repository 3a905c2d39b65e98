# The tools that the harness may get, and how its support for them is known.
package admission.limits.runner_capability

import future.keywords.not

limits := {"harness": input.harness, "tools": input.names, "source": input.source} if {
	is_string(input.harness)
	is_array(input.names)
	count(input.names) == input.tools
	is_string(input.source)
}
