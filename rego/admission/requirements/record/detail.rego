package admission.requirements.record.detail

import future.keywords.not

# METADATA
# title: Payloads are recorded only in a controlled environment
# description: Arguments and results can contain personal data. The active profile and its permissions are values in
#   policy/operations.yaml.
# custom:
#   code: payload_detail_not_admitted
#   fixed: true
#   remedy: Record summaries, or use a profile of policy/operations.yaml with payload_detail set
#   reads: [operations.profile, operations.profiles]
# labels:
#   row: B42
detail_admitted if input.detail in {"summary", "decisions"}

detail_admitted if {
	input.detail == "payload"
	data.policy.operations.profiles[data.policy.operations.profile].payload_detail == true
}

# METADATA
# title: The retention period is not below the minimum
# description: The minimum number of days is a value of the active profile in policy/operations.yaml.
# custom:
#   code: retention_below_floor
#   fixed: true
#   remedy: Keep the record for at least retention_days_min of the active profile (policy/operations.yaml)
#   reads: [operations.profile, operations.profiles]
# labels:
#   row: B42
kept_long_enough if {
	is_number(input.retention_days)
	input.retention_days >= data.policy.operations.profiles[data.policy.operations.profile].retention_days_min
}

# METADATA
# title: Retention is decided under the policy of the last enforced decision
# description: Otherwise the minimum could be lowered by naming another folder of values. Applies to the engine's own
#   record.
# custom:
#   code: policy_not_in_force
#   fixed: true
#   remedy: Use the policy of the last enforced decision, or enforce a decision under the new one
# labels:
#   row: B42
policy_in_force if input.detail in {"summary", "payload"}

policy_in_force if {
	input.detail == "decisions"
	input.policy_in_force == true
}
