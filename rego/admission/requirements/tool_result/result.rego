package admission.requirements.tool_result.result

import future.keywords.not

# METADATA
# title: The tool is one that we know
# description: Every tool has an entry in policy/tools.yaml; what gave this result was none of them.
# custom:
#   code: tool_unknown
#   remedy: Give the tool an entry in policy/tools.yaml
#   reads: [tools.tools]
# labels:
#   row: A07
known if is_object(data.policy.tools.tools[input.tool])

# METADATA
# title: The result is text for a model, or an error
# description: Bytes that are no text are not shown to a model.
# custom:
#   code: result_not_text
#   remedy: Let the tool give text, or values that have a JSON form
# labels:
#   row: B28
text_or_error if {
	input.status == "ok"
	is_number(input.result.bytes)
	is_string(input.result.digest)
	input.result.media in {"text", "json"}
}

text_or_error if {
	input.status == "error"
	input.error.kind in {"validation", "other"}
}

# METADATA
# title: Every side effect is of a class that the tool declares
# description: The classes of a tool are in its entry in policy/tools.yaml; what it did beside them, nobody has
#   decided on. The effect is recorded all the same.
# custom:
#   code: side_effect_undeclared
#   each: side_effects
#   empty: allowed
#   remedy: Look at what the tool did, then declare the class in policy/tools.yaml or correct the tool
#   reads: ["tools.tools.{tool}.side_effects"]
#   after: [tool_unknown]
# labels:
#   row: A07, A99
side_effect_declared(effect) if {
	is_string(effect.class)
	effect.class != "none"
	effect.class in data.policy.tools.tools[input.tool].side_effects
}
