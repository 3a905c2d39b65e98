package admission.requirements.llm.rate

import future.keywords.not

# METADATA
# title: The provider may be asked once more in this minute
# description: Counted by host over all callers, retries included; refused requests do not count.
# custom:
#   code: rate_limited
#   after: [base_url_not_canonical]
#   proof: only the quota of this name counts
#   remedy: Wait for the next minute, or have quotas.llm.host in policy/budgets.yaml raised to the limit of the
#     provider
#   reads: [budgets.quotas.llm.host]
# labels:
#   row: E14
#   threat: DoS
rate_left if {
	some counted in input.quotas
	counted.id == "host"
	is_number(counted.used)
	is_number(counted.amount)
	counted.used + counted.amount <= data.policy.budgets.quotas.llm.host.limit
}

# METADATA
# title: The request has an attempt left
# description: The number of attempts for one answer is a value in policy/llm.yaml.
# custom:
#   code: attempts_exhausted
#   facts: {attempt: llm.attempt}
#   remedy: Ask again later, or have retry.max_attempts in policy/llm.yaml raised
#   reads: [llm.retry.max_attempts]
# labels:
#   row: E15
#   threat: DoS
attempt_left if {
	is_number(input.llm.attempt)
	input.llm.attempt >= 1
	input.llm.attempt <= data.policy.llm.retry.max_attempts
}

# METADATA
# title: A further attempt follows a temporary error
# description: The errors after which a request is sent again are values in policy/llm.yaml.
# custom:
#   code: error_not_retried
#   facts: {after: llm.after}
#   remedy: Correct what the error names before asking again
#   reads: [llm.retry.errors]
# labels:
#   row: E15
#   threat: DoS
error_passes if {
	input.llm.attempt == 1
	input.llm.after == "none"
}

error_passes if {
	is_number(input.llm.attempt)
	input.llm.attempt > 1
	input.llm.after in data.policy.llm.retry.errors
}
