# The tools that may be shown.
package admission.limits.tool_visibility

import data.admission.lib.tool_visibility
import future.keywords.not

# METADATA
# custom:
#   proof: a tool that lacks a fact is left out and not shown
limits := {"visible": [tool.name | some tool in input.tools; tool_visibility.visible(tool)]} if {
	is_array(input.tools)
}
