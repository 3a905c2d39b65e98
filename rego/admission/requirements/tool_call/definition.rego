package admission.requirements.tool_call.definition

import data.admission.lib.tool_definition
import future.keywords.not

# METADATA
# title: The tool is called under the definition that was pinned for it
# description: A server that changes the definition of a tool has another tool, which has to be looked at again.
# custom:
#   code: definition_changed
#   fixed: true
#   remedy: Send the definition with the call; when it changed, let somebody look at it and pin its digest
#   reads: ["tools.tools.{call.tool}.definition"]
#   after: [tool_unknown]
as_pinned if tool_definition.as_pinned(input.call.tool, input.definition.digest)

as_pinned if tool_definition.unasked(input.call.tool)

# METADATA
# title: The arguments are as the definition of the tool says
# description: The definition has to be a valid schema, and the arguments have to fit it.
# custom:
#   code: arguments_unfit
#   remedy: Send the arguments that the definition asks for, with the names and types that it says
#   after: [tool_unknown, definition_changed]
fitting if {
	input.definition.schema_valid == true
	input.definition.fits == true
}

fitting if tool_definition.unasked(input.call.tool)
