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
# title: The definition has a valid JSON Schema of the arguments
# description: The engine reads JSON Schema within bounds. It fetches nothing and matches patterns in linear time.
# custom:
#   code: schema_invalid
#   remedy: Send the definition with a JSON Schema (2020-12, 2019-09 or draft 7) that refers to itself only, with
#     patterns that have no back references and look ahead at their start only; for a tool whose schema is not
#     known here, state `definition` as none in policy/tools.yaml
#   after: [definition_changed]
# labels:
#   row: H14
readable if input.definition.schema_valid == true

readable if tool_definition.not_required(input.call.tool)

# METADATA
# title: Every argument fits the schema in the tool's definition
# description: The list contains the arguments that do not fit, and those that are missing.
# custom:
#   code: arguments_unfit
#   each: misfits
#   empty: required
#   remedy: Send the arguments that the definition requires, with the names and types that it states
#   proof: the list contains only problems, so an empty list means that there are none
#   after: [schema_invalid]
# labels:
#   row: H14
fitting if input.misfits == []

fitting if {
	is_array(input.misfits)
	tool_definition.not_required(input.call.tool)
}
