package admission.requirements.tool_result.error

import future.keywords.not

# METADATA
# title: Errors are shown as the profile in force admits
# description: What a program says of its own errors can hold anybody's data, so the mode debug is for controlled
#   environments. Modes are values of the profiles in policy/operations.yaml.
# custom:
#   code: debug_not_controlled
#   remedy: Use the error mode safe, or run in a profile whose tool_error_modes name debug
#   reads: [operations.profile, operations.profiles]
# labels:
#   row: B30, B31
mode_admitted if {
	input.error_mode in data.policy.operations.profiles[data.policy.operations.profile].tool_error_modes
}

# METADATA
# title: What is shown of an error beside its message holds no secret and no path
# description: Class, code and details of a validation error are for anybody's eyes.
# custom:
#   code: details_not_safe
#   each: details
#   empty: allowed
#   remedy: Let the tool name the argument that is wrong, and not its value or a place on this machine
# labels:
#   row: B32
detail_safe(detail) if {
	detail.secret == false
	detail.path == false
}

# METADATA
# title: The message that is shown of an error holds no secret and no path
# description: The message of a validation error is shown so that the model can correct itself; that of another
#   error only in mode debug, where it may name paths.
# custom:
#   code: message_not_safe
#   each: messages
#   empty: allowed
#   remedy: Let the tool say in plain words what is wrong with the arguments
# labels:
#   row: B30, B31
message_safe(message) if {
	message.secret == false
	message.path == false
}

message_safe(message) if {
	message.secret == false
	input.error_mode == "debug"
}

message_safe(message) if {
	is_string(message.id)
	input.error.kind == "other"
	input.error_mode == "safe"
}
