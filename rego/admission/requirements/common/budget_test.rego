package admission.requirements.common.budget_test

import data.admission.requirements.common.budget
import future.keywords.not

ceiling := {"limit": 100, "window_seconds": 60}

row(principal) := {"budgets": {"license": {"principal": principal, "run": "unlimited", "all": "unlimited"}}}

stated(principal, counted) if budget.budgets_stated with input as {"point": "license", "budgets": counted}
	with data.policy.budgets as row(principal)

codes(counted) := found if {
	found := {one.code | some one in budget._findings} with input as {"point": "license", "budgets": counted}
		with data.policy.budgets as row(ceiling)
}

test_unlimited_needs_no_count if stated("unlimited", [])

test_a_ceiling_needs_its_count if {
	stated(ceiling, [{"id": "principal", "used": 0, "amount": 1}])
	not stated(ceiling, [])
	not stated(ceiling, [{"id": "run", "used": 0, "amount": 1}])
}

test_another_word_is_no_budget if not stated("free", [])

test_a_point_without_a_row if {
	not budget.budgets_stated with input as {"point": "license", "budgets": []} with data.policy.budgets as {"budgets": {}}
}

test_one_of_three_missing if {
	not budget.budgets_stated with input as {"point": "license", "budgets": []}
		with data.policy.budgets as {"budgets": {"license": {"principal": "unlimited", "run": "unlimited"}}}
}

test_the_last_one_is_left if {
	codes([{"id": "principal", "used": 99, "amount": 1}]) == set()
	budget.budget_left({"id": "principal", "used": 99, "amount": 1}) with input as {"point": "license"}
		with data.policy.budgets as row(ceiling)
}

test_one_too_many if codes([{"id": "principal", "used": 100, "amount": 1}]) == {"budget_exhausted"}

test_a_count_that_is_missing_or_no_number if {
	codes([{"id": "principal", "amount": 1}]) == {"budget_exhausted"}
	codes([{"id": "principal", "used": null, "amount": 1}]) == {"budget_exhausted"}
	codes([{"id": "principal", "used": 0}]) == {"budget_exhausted"}
}

test_a_count_of_what_has_no_limit if {
	codes([{"id": "principal", "used": 0, "amount": 1}, {"id": "run", "used": 0, "amount": 1}]) == {"budget_exhausted"}
}
