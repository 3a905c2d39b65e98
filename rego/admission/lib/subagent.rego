# What the operations on subagents are, and what is left of a quota.
package admission.lib.subagent

import future.keywords.not

# METADATA
# description: Whether the operation starts a subagent.
starts(operation) if operation in {"spawn", "run"}

# METADATA
# description: Whether the operation is about a subagent that there is.
attends(operation) if operation in {"poll", "cancel", "kill"}

# METADATA
# description: The row of the operation in policy/subagents.yaml; only where it is complete.
row(operation) := found if {
	found := data.policy.subagents.operations[operation]
	is_string(found.tool)
	is_number(found.timeout_seconds)
}

# METADATA
# description: Whether what was counted of a quota of new subagents, and this one, stay within its ceiling.
within_quota(quotas, name) if {
	some counted in quotas
	counted.id == name
	is_number(counted.used)
	is_number(counted.amount)
	counted.used + counted.amount <= data.policy.budgets.quotas.subagent[name].limit
}
