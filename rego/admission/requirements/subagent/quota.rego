package admission.requirements.subagent.quota

import data.admission.lib.subagent
import future.keywords.not

# METADATA
# title: The conversation may start one more subagent
# description: The quota is a value in policy/budgets.yaml; refused requests do not count.
# custom:
#   code: "spawn_quota:conversation"
#   after: [invalid_child_id]
#   proof: only the quota of this name counts; each has its own requirement
#   remedy: Use the existing subagents, wait for the next quota window, or have quotas.subagent.conversation in
#     policy/budgets.yaml raised
#   reads: [budgets.quotas.subagent.conversation]
# labels:
#   row: B24
#   threat: DoS
conversation_left if subagent.attends(input.operation)

conversation_left if {
	subagent.starts(input.operation)
	subagent.within_quota(input.quotas, "conversation")
}

# METADATA
# title: The user may start one more subagent
# description: Counted over all conversations. The quota is a value in policy/budgets.yaml.
# custom:
#   code: "spawn_quota:user"
#   after: [invalid_child_id]
#   proof: only the quota of this name counts; each has its own requirement
#   remedy: Wait for the user's next quota window, or have quotas.subagent.user in policy/budgets.yaml raised
#   reads: [budgets.quotas.subagent.user]
# labels:
#   row: B24
#   threat: DoS
user_left if subagent.attends(input.operation)

user_left if {
	subagent.starts(input.operation)
	subagent.within_quota(input.quotas, "user")
}

# METADATA
# title: The account may start one more subagent
# description: Counted over all its users. The quota is a value in policy/budgets.yaml.
# custom:
#   code: "spawn_quota:account"
#   after: [invalid_child_id]
#   proof: only the quota of this name counts; each has its own requirement
#   remedy: Wait for the account's next quota window, or have quotas.subagent.account in policy/budgets.yaml raised
#   reads: [budgets.quotas.subagent.account]
# labels:
#   row: B24
#   threat: DoS
account_left if subagent.attends(input.operation)

account_left if {
	subagent.starts(input.operation)
	subagent.within_quota(input.quotas, "account")
}
