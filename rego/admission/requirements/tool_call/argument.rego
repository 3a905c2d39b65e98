package admission.requirements.tool_call.argument

import future.keywords.not

# METADATA
# title: The arguments are one unambiguous JSON object
# description: Another parser could read duplicate keys, NaN or ambiguous text as a different call.
# custom:
#   code: arguments_unreadable
#   remedy: Send the arguments as one JSON object with each key once and plain numbers
# labels:
#   row: B07
readable if input.call.readable == true

# METADATA
# title: The arguments are within the size limit
# description: The limits are values in policy/tools.yaml. Larger arguments were not checked completely.
# custom:
#   code: arguments_too_large
#   remedy: Send less, such as a path instead of the content of a file
#   reads: [tools.limits.arguments]
#   after: [arguments_unreadable]
# labels:
#   row: H18
within_ceilings if {
	input.call.complete == true
	is_number(input.call.bytes)
	input.call.bytes <= data.policy.tools.limits.arguments.bytes
	is_number(input.call.depth)
	input.call.depth <= data.policy.tools.limits.arguments.depth
	is_number(input.call.count)
	input.call.count <= data.policy.tools.limits.arguments.values
}

# METADATA
# title: The tool's entry declares a type for every argument
# description: Without a type, how the tool reads the argument is unknown.
# custom:
#   code: argument_untyped
#   each: call.arguments
#   empty: allowed
#   remedy: Remove the argument, or ask for it to be declared in policy/tools.yaml
#   reads: ["tools.tools.{call.tool}.arguments"]
#   after: [tool_unknown]
# labels:
#   row: B07
typed(argument) if {
	some declared in data.policy.tools.tools[input.call.tool].arguments
	argument.type == declared
}

# METADATA
# title: Every argument value is unambiguous
# description: A tool may read duplicate keys or deep nesting in embedded JSON, control characters, and disguised
#   addresses or commands differently than a rule does.
# custom:
#   code: value_unreadable
#   each: unreadable
#   empty: required
#   proof: the list contains only problems, so an empty list means that there are none
#   remedy: Write the value without escapes, control characters or JSON inside text; or, if the tool only stores or
#     shows it, have the argument declared as `text` in policy/tools.yaml
#   after: [tool_unknown]
# labels:
#   row: B07
every_value_readable if input.unreadable == []

# METADATA
# title: No argument contains a secret, unless the tool is declared to take secrets
# description: Arguments are recorded as summaries, shown to people and sent to servers.
# custom:
#   code: secret_in_arguments
#   waivable: false
#   each: secrets
#   empty: allowed
#   remedy: Configure the secret in the tool, and leave it out of the call
#   reads: ["tools.tools.{call.tool}.secrets"]
#   after: [tool_unknown]
# labels:
#   row: B26
secrets_admitted(place) if {
	is_string(place.id)
	data.policy.tools.tools[input.call.tool].secrets == true
}
