# What a proposed code action must be, and how hints narrow the limits of policy/code.yaml.
package admission.lib.code

import future.keywords.not

# A hint may request no network or be absent; any other value requests a network (C03, C77).
network_denied if input.hints.network_access.stated == false

network_denied if {
	input.hints.network_access.stated == true
	input.hints.network_access.value in data.policy.code.hints.network_access
}

# The time budget of the run is not used up.
in_time if {
	is_number(input.elapsed_ms)
	input.elapsed_ms >= 0
	input.elapsed_ms <= data.policy.code.max_seconds * 1000
}

# The task has attempts left; a request without a task has no earlier ones (C63).
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

# Maximum length of the code, in characters: the hint, within the bounds of the policy.
max_code_chars := _kept(input.hints.max_code_chars, data.policy.code.hints.max_code_chars)

# Timeout of one execution, in seconds.
exec_timeout_seconds := _kept(input.hints.exec_timeout_seconds, data.policy.code.hints.exec_timeout_seconds)

# Languages of proposals: those of the policy, limited to the hinted ones if there are hints (C05, H19).
# METADATA
# custom:
#   proof: the comprehension takes only languages of the policy, so a missing hint leaves fewer, never more
languages := sort([language | some language in data.policy.code.languages; _hinted(language)]) if {
	is_boolean(input.hints.allowed_languages.readable)
	is_array(data.policy.code.languages)
}

# Languages that may be executed; hints do not change them (C78).
# METADATA
# custom:
#   proof: the comprehension reads only policy values and no facts
execution_languages := sort([language | some language, _ in data.policy.code.execution]) if {
	is_object(data.policy.code.execution)
}

_hinted(language) if {
	input.hints.allowed_languages.readable == false
	is_string(language)
}

_hinted(language) if {
	input.hints.allowed_languages.readable == true
	language in input.hints.allowed_languages.values
}

_kept(hint, row) := row.default if hint.readable == false

_kept(hint, row) := min([max([hint.value, row.minimum]), row.maximum]) if {
	hint.readable == true
	is_number(hint.value)
	is_number(row.minimum)
	is_number(row.maximum)
}
