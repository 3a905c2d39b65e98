package admission.requirements.tool_call.definition

import data.admission.lib.tool_definition
import future.keywords.not

# METADATA
# title: The definition of the tool is the pinned one
# description: A changed definition is a different tool, which must be reviewed again.
# custom:
#   code: definition_changed
#   fixed: true
#   remedy: Send the definition with the call; if it changed, have it reviewed and its digest written to `definition` of
#     the tool in policy/tools.yaml
#   reads: ["tools.tools.{call.tool}.definition"]
#   after: [tool_unknown]
# labels:
#   row: H14
as_pinned if tool_definition.as_pinned(input.call.tool, input.definition.digest)

as_pinned if tool_definition.not_required(input.call.tool)

# METADATA
# title: The definition of the tool has no hidden characters and no instructions to the model
# description: A model that has read such a definition may not make the calls that it was given the tool for. Markers
#   are values in policy/results.yaml.
# custom:
#   code: definition_steers
#   remedy: Leave the tool out, or describe what it does without addressing the model
#   reads: [results.markers]
#   after: [definition_changed]
# labels:
#   row: H14
#   threat: injection
informing if tool_definition.informs(input.definition)

informing if tool_definition.not_required(input.call.tool)

# METADATA
# title: The arguments fit the schema in the tool's definition
# description: The definition must be a valid schema, and the arguments must fit it.
# custom:
#   code: arguments_unfit
#   remedy: Send the arguments that the definition requires, with the names and types that it states
#   after: [definition_changed]
# labels:
#   row: H14
fitting if {
	input.definition.schema_valid == true
	input.definition.fits == true
}

fitting if tool_definition.not_required(input.call.tool)
