package admission.requirements.tool_result.error

import future.keywords.not

# METADATA
# title: The error mode is admitted by the current profile
# description: Error messages of programs can contain personal data, so mode debug is for controlled environments.
#   Modes are values of the profiles in policy/operations.yaml.
# custom:
#   code: debug_not_controlled
#   waivable: false
#   remedy: Use the error mode safe, or a profile of policy/operations.yaml whose tool_error_modes list debug
#   reads: [operations.profile, operations.profiles]
# labels:
#   row: B30, B31
mode_admitted if {
	input.error_mode in data.policy.operations.profiles[data.policy.operations.profile].tool_error_modes
}

# METADATA
# title: The visible details of an error are plain words without a secret, path or stack trace
# description: Class, code and details of a validation error are visible to everyone. Hidden characters, links that
#   carry data and instructions to the model do not belong there.
# custom:
#   code: details_not_safe
#   waivable: false
#   each: details
#   empty: allowed
#   remedy: Name the wrong argument, but not its value or a path on this machine
# labels:
#   row: B32
detail_safe(detail) if {
	detail.secret == false
	detail.path == false
	detail.trace == false
	detail.plain == true
}

# METADATA
# title: The visible message of an error is plain words without a secret, path or stack trace
# description: The message of a validation error is shown so that the model can correct itself; other messages only in
#   mode debug, where they may name paths.
# custom:
#   code: message_not_safe
#   waivable: false
#   each: messages
#   empty: allowed
#   remedy: Describe what is wrong with the arguments in plain words
# labels:
#   row: B30, B31
message_safe(message) if {
	message.secret == false
	message.path == false
	message.trace == false
	message.plain == true
}

message_safe(message) if {
	message.secret == false
	message.trace == false
	message.plain == true
	input.error_mode == "debug"
}

message_safe(message) if {
	is_string(message.id)
	input.error.kind == "other"
	input.error_mode == "safe"
}
