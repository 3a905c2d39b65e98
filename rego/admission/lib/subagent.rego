# The operations on subagents, and how much of a quota is left.
package admission.lib.subagent

import future.keywords.not

# METADATA
# description: Whether the operation starts a subagent.
starts(operation) if operation in {"spawn", "run"}

# METADATA
# description: Whether the operation refers to an existing subagent.
attends(operation) if operation in {"poll", "cancel", "kill"}

# METADATA
# description: The row of the operation in policy/subagents.yaml, if it is complete.
row(operation) := operation_row if {
	operation_row := data.policy.subagents.operations[operation]
	is_string(operation_row.tool)
	is_number(operation_row.timeout_seconds)
}

# METADATA
# description: Whether one more subagent stays within a quota.
within_quota(quotas, name) if {
	some counted in quotas
	counted.id == name
	is_number(counted.used)
	is_number(counted.amount)
	counted.used + counted.amount <= data.policy.budgets.quotas.subagent[name].limit
}
