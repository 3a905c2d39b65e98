# What makes a tool of a list visible; each condition is a requirement too, so that findings name the one that fails.
package admission.lib.tool_visibility

import data.admission.lib.tool_definition
import data.admission.lib.tools
import future.keywords.not

visible(tool) if {
	tools.visible(input.context, tool.name)
	tools.in_profile(input.context, tool.name)
	defined(tool)
	tool_definition.informs(tool)
	listed_once(tool)
	not_stopped(tool)
	approved(tool)
}

defined(tool) if tool_definition.as_pinned(tool.name, tool.definition_digest)

defined(tool) if tool_definition.not_required(tool.name)

listed_once(tool) if {
	is_string(tool.name)
	tool.occurrences == 1
}

# No stop is in force for the tool. A stop of everything or of the caller refuses the whole request.
#
# METADATA
# custom:
#   proof: there is a list of stops, and each of them is looked at
not_stopped(tool) if {
	is_string(tool.name)
	is_array(input.stops)
	every stop in input.stops {
		_spares(stop, tool.name)
	}
}

_spares(stop, _) if stop.scope in {"all", "principal"}

_spares(stop, name) if {
	stop.scope == "tool"
	is_string(stop.name)
	is_string(name)
	stop.name != name
}

# The provisioned agent that the caller is, if it is one, was approved with the tool and is active.
#
# METADATA
# custom:
#   proof: there is a list of agents, empty for other callers, and each of them is looked at
approved(tool) if {
	is_string(tool.name)
	is_array(input.agents)
	every agent in input.agents {
		agent.active == true
		is_array(agent.tools)
		tool.name in agent.tools
	}
}
