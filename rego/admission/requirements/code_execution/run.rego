package admission.requirements.code_execution.run

import data.admission.lib.code
import data.admission.lib.code_execution
import future.keywords.not

# METADATA
# title: The run has time left
# description: Checked again before anything runs. The seconds of a whole run are a value in policy/code.yaml; hints
#   cannot raise them.
# custom:
#   code: max_seconds
#   remedy: Start a new run; propose sooner, or have max_seconds in policy/code.yaml raised
#   reads: [code.max_seconds]
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
#     - static_policy_violation
# labels:
#   row: C06, C44, C78
in_time if {
	code.in_time
	is_number(code_execution.remaining_seconds)
	code_execution.remaining_seconds > 0
}

# METADATA
# title: The task has attempts left
# description: Repairs count as attempts; a request without a task has none. The limit is a value in policy/code.yaml.
# custom:
#   code: attempts_exhausted
#   remedy: Have a person review the earlier attempts, or start another task
#   reads: [code.attempts]
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
#     - static_policy_violation
#     - max_seconds
# labels:
#   row: C63
attempts_left if {
	input.task.stated == true
	is_string(input.task.value)
	is_array(input.attempts)
	is_number(data.policy.code.attempts)
	count(input.attempts) < data.policy.code.attempts
}

attempts_left if {
	input.task.stated == false
	is_array(input.attempts)
	count(input.attempts) < 1
}

# METADATA
# title: The code was not tried before without success
# description: The same code would fail in the same way. An attempt with an unknown end is no success.
# custom:
#   code: code_repeated
#   each: attempts
#   empty: allowed
#   remedy: Propose other code, or start another task
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
#     - static_policy_violation
#     - max_seconds
#     - attempts_exhausted
# labels:
#   row: C63
not_repeated(attempt) if {
	is_string(attempt.code_sha256)
	attempt.state == "ok"
}

not_repeated(attempt) if {
	is_string(attempt.code_sha256)
	is_string(input.action.code.sha256)
	count(attempt.code_sha256) == 64
	count(input.action.code.sha256) == 64
	attempt.code_sha256 != input.action.code.sha256
}
