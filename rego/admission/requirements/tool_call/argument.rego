package admission.requirements.tool_call.argument

import future.keywords.not

# METADATA
# title: The arguments are one object that can be read in one way only
# description: Text with doubled keys, with NaN, or with more than one reading would be another call to somebody else.
# custom:
#   code: arguments_unreadable
#   remedy: Send the arguments as one JSON object with each key once and plain numbers
readable if input.call.readable == true

# METADATA
# title: The arguments are no larger than a call may be
# description: The ceilings are values in policy/tools.yaml. What is larger was not looked at in whole.
# custom:
#   code: arguments_too_large
#   remedy: Send less, such as the path of a file in the place of its content
#   reads: [tools.limits.arguments]
#   after: [arguments_unreadable]
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
# title: Every argument is one that the entry of the tool lists with its type
# description: Without a type nobody knows how the tool will read the argument.
# custom:
#   code: argument_untyped
#   each: call.arguments
#   empty: allowed
#   remedy: Leave the argument out, or ask for it to be listed in policy/tools.yaml
#   reads: ["tools.tools.{call.tool}.arguments"]
#   after: [tool_unknown]
typed(argument) if {
	some declared in data.policy.tools.tools[input.call.tool].arguments
	argument.type == declared
}

# METADATA
# title: Every value of the arguments has one reading
# description: JSON inside of text with doubled keys or too many levels, control characters, and disguises of addresses
#   and commands are values that a tool may read otherwise than a rule does.
# custom:
#   code: value_unreadable
#   each: unreadable
#   empty: required
#   proof: the list holds what is wrong, so an empty one is the good case
#   remedy: Write the value plainly, without escapes, control characters or JSON inside of text
#   after: [tool_unknown]
every_value_readable if input.unreadable == []

# METADATA
# title: No argument holds a password, token or key, unless the tool is meant to take them
# description: Arguments are kept as summaries, shown to people and sent to servers.
# custom:
#   code: secret_in_arguments
#   each: secrets
#   empty: allowed
#   remedy: Let the tool take the secret from its own configuration, and leave it out of the call
#   reads: ["tools.tools.{call.tool}.secrets"]
#   after: [tool_unknown]
secrets_admitted(place) if {
	is_string(place.id)
	data.policy.tools.tools[input.call.tool].secrets == true
}
