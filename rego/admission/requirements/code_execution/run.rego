package admission.requirements.code_execution.run

import data.admission.lib.code
import data.admission.lib.code_execution
import future.keywords.not

# METADATA
# title: The run has time left
# description: Checked again before anything runs. The time budget of a run is a value in policy/code.yaml; hints
#   cannot raise it.
# custom:
#   code: max_seconds
#   remedy: Start a new run; propose sooner, or have max_seconds in policy/code.yaml raised
#   reads: [code.max_seconds]
#   after: [static_policy_violation]
# labels:
#   row: C06, C44, C78
#   threat: ACE
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
#   after: [max_seconds]
# labels:
#   row: C63
#   threat: ACE
attempts_left if code.attempts_left

# METADATA
# title: The same code has not failed before in this task
# description: The same code would fail in the same way. An attempt with an unknown outcome counts as failed.
# custom:
#   code: code_repeated
#   each: attempts
#   empty: allowed
#   remedy: Propose other code, or start another task
#   after: [attempts_exhausted]
# labels:
#   row: C63
#   threat: ACE
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
