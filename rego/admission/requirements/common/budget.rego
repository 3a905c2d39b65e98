package admission.requirements.common.budget

import future.keywords.not

# METADATA
# title: Every budget of this point is stated and counted
# description: For each principal, for each run and for all together there is a ceiling, with what was used of it
#   counted by the engine, or the word `unlimited`.
# custom:
#   code: budget_unknown
#   remedy: State all three budgets of this point in policy/budgets.yaml
#   reads: ["budgets.budgets.{point}"]
budgets_stated if {
	_stated("principal")
	_stated("run")
	_stated("all")
}

# METADATA
# custom:
#   proof: the budget of this name is asked for; that nothing of any budget is overspent is a requirement of its own
_stated(scope) if data.policy.budgets.budgets[input.point][scope] == "unlimited"

_stated(scope) if {
	is_object(data.policy.budgets.budgets[input.point][scope])
	some counted in input.budgets
	counted.id == scope
}

# METADATA
# title: Nothing of a budget is overspent
# description: What was used or is held by others, and what this request takes, stay within the limit.
# custom:
#   code: budget_exhausted
#   each: budgets
#   empty: allowed
#   remedy: Wait for the next window, or ask whoever decides on policy/budgets.yaml
#   reads: ["budgets.budgets.{point}"]
budget_left(counted) if {
	is_number(counted.used)
	is_number(counted.amount)
	counted.used + counted.amount <= data.policy.budgets.budgets[input.point][counted.id].limit
}
