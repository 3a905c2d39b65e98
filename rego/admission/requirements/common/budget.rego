package admission.requirements.common.budget

import future.keywords.not

# METADATA
# title: Every budget of this point is stated
# description: There is a ceiling per principal, per run and in total, or the word `unlimited`. The engine counts the
#   usage.
# custom:
#   code: budget_unknown
#   remedy: State all three budgets of this point in policy/budgets.yaml
#   reads: ["budgets.budgets.{point}"]
# labels:
#   row: C66
#   threat: DoS
budgets_stated if {
	_stated("principal")
	_stated("run")
	_stated("all")
}

# METADATA
# custom:
#   proof: only the budget of this name counts; another requirement checks that no budget is exceeded
_stated(scope) if data.policy.budgets.budgets[input.point][scope] == "unlimited"

_stated(scope) if {
	is_object(data.policy.budgets.budgets[input.point][scope])
	some counted in input.budgets
	counted.id == scope
}

# METADATA
# title: Every budget has room for the request
# description: Used and reserved units plus those of this request must stay within the limit.
# custom:
#   code: budget_exhausted
#   each: budgets
#   empty: allowed
#   remedy: Wait for the next window, or have the budget raised in policy/budgets.yaml
#   reads: ["budgets.budgets.{point}"]
# labels:
#   row: C66
#   threat: DoS
budget_left(counted) if {
	is_number(counted.used)
	is_number(counted.amount)
	counted.used + counted.amount <= data.policy.budgets.budgets[input.point][counted.id].limit
}
