package admission.requirements.subagent.operation

import data.admission.lib.subagent
import future.keywords.not

# METADATA
# title: The operation is known
# description: Operations, their tools and timeouts are rows in policy/subagents.yaml.
# custom:
#   code: operation_not_admitted
#   remedy: Use an operation that has a row in policy/subagents.yaml, or ask for a row
#   reads: ["subagents.operations.{operation}"]
# labels:
#   row: B25
operation_admitted if is_object(subagent.row(input.operation))

# METADATA
# title: The requested number of turns is above zero
# description: The request is capped at the maximum in policy/subagents.yaml.
# custom:
#   code: limit_turns_invalid
#   remedy: Request at least one turn, or omit limit_turns
# labels:
#   row: B19
turns_valid if input.limit_turns.stated == false

turns_valid if {
	input.limit_turns.stated == true
	is_number(input.limit_turns.requested)
	input.limit_turns.requested > 0
}

# METADATA
# title: The requested timeout is above zero and within that of the operation
# description: Every operation has a timeout in policy/subagents.yaml; a request can only shorten it.
# custom:
#   code: timeout_invalid
#   after: [operation_not_admitted]
#   facts: {timeout_seconds: timeout_seconds.requested}
#   remedy: Request at least one second and at most the timeout of the operation in policy/subagents.yaml, or omit
#     timeout_seconds
#   reads: ["subagents.operations.{operation}"]
# labels:
#   row: B25
timeout_valid if {
	input.timeout_seconds.stated == false
	is_object(subagent.row(input.operation))
}

timeout_valid if {
	input.timeout_seconds.stated == true
	is_number(input.timeout_seconds.requested)
	input.timeout_seconds.requested > 0
	most := subagent.row(input.operation).timeout_seconds
	is_number(most)
	input.timeout_seconds.requested <= most
}
