# What makes a tool of a list visible; each condition is a requirement too, so that findings name the one that fails.
package admission.lib.tool_visibility

import data.admission.lib.tool_definition
import data.admission.lib.tools
import future.keywords.not

visible(tool) if {
	tools.visible(input.context, tool.name)
	tools.in_profile(input.context, tool.name)
	defined(tool)
	listed_once(tool)
}

defined(tool) if tool_definition.as_pinned(tool.name, tool.definition_digest)

defined(tool) if tool_definition.not_required(tool.name)

listed_once(tool) if {
	is_string(tool.name)
	tool.occurrences == 1
}
