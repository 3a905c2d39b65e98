package admission.requirements.tool_result.result

import future.keywords.not

# METADATA
# title: The tool is known
# description: Every tool has an entry in policy/tools.yaml.
# custom:
#   code: tool_unknown
#   remedy: Add the tool to policy/tools.yaml
#   reads: [tools.tools]
# labels:
#   row: A07
known if is_object(data.policy.tools.tools[input.tool])

# METADATA
# title: The result is text or an error
# description: Binary data is not shown to a model.
# custom:
#   code: result_not_text
#   remedy: Return text or JSON values
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
# title: The tool declares the class of every side effect
# description: The classes of a tool are in its entry in policy/tools.yaml; other side effects were not approved. The
#   effect is recorded in any case.
# custom:
#   code: side_effect_undeclared
#   each: side_effects
#   empty: allowed
#   remedy: Review the tool, then declare the class in policy/tools.yaml or correct the tool
#   reads: ["tools.tools.{tool}.side_effects"]
#   after: [tool_unknown]
# labels:
#   row: A07, A99
side_effect_declared(effect) if {
	is_string(effect.class)
	effect.class != "none"
	effect.class in data.policy.tools.tools[input.tool].side_effects
}
