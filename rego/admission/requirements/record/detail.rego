package admission.requirements.record.detail

import future.keywords.not

# METADATA
# title: Payloads are written down only in a controlled environment
# description: Arguments and results can hold anybody's data. Which profile is in force, and what it may, are values
#   in policy/operations.yaml.
# custom:
#   code: payload_detail_not_admitted
#   fixed: true
#   remedy: Write summaries, or run in a profile whose payload_detail is true
#   reads: [operations.profile, operations.profiles]
# labels:
#   row: B42
detail_admitted if input.detail in {"summary", "decisions"}

detail_admitted if {
	input.detail == "payload"
	data.policy.operations.profiles[data.policy.operations.profile].payload_detail == true
}

# METADATA
# title: What is written down is kept as long as we have to
# description: The fewest days are a value of the profile in policy/operations.yaml.
# custom:
#   code: retention_below_floor
#   fixed: true
#   remedy: Keep it for at least the days that the profile in force states
#   reads: [operations.profile, operations.profiles]
# labels:
#   row: B42
kept_long_enough if {
	is_number(input.retention_days)
	input.retention_days >= data.policy.operations.profiles[data.policy.operations.profile].retention_days_min
}

# METADATA
# title: How long the record is kept is decided under the policy that was in force last
# description: Otherwise anyone who can name a folder of values could lower the fewest days. Holds for the engine's
#   own record.
# custom:
#   code: policy_not_in_force
#   fixed: true
#   remedy: Name the policy that the last enforced decision was taken under, or enforce a decision under the new one
# labels:
#   row: B42
policy_in_force if input.detail in {"summary", "payload"}

policy_in_force if {
	input.detail == "decisions"
	input.policy_in_force == true
}
