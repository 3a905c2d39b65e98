package admission.requirements.common.budget_test

import data.admission.requirements.common.budget
import future.keywords.not

ceiling := {"limit": 100, "window_seconds": 60}

row(principal) := {"budgets": {"license": {"principal": principal, "run": "unlimited", "all": "unlimited"}}}

counted(scopes) := {
	"point": "license",
	"budgets": [{"id": scope, "used": 0, "amount": 1} | some scope in scopes],
}

test_unlimited_needs_no_count if {
	budget.budgets_stated with input as counted([]) with data.policy.budgets as row("unlimited")
}

test_a_ceiling_needs_its_count if {
	budget.budgets_stated with input as counted(["principal"]) with data.policy.budgets as row(ceiling)
	not budget.budgets_stated with input as counted([]) with data.policy.budgets as row(ceiling)
	not budget.budgets_stated with input as counted(["run"]) with data.policy.budgets as row(ceiling)
}

test_another_word_is_no_budget if {
	not budget.budgets_stated with input as counted([]) with data.policy.budgets as row("free")
	not budget.budgets_stated with input as counted(["principal"]) with data.policy.budgets as row("free")
}

test_a_point_without_a_row if {
	not budget.budgets_stated with input as counted([]) with data.policy.budgets as {"budgets": {}}
}

test_one_of_three_missing if {
	every scope in ["principal", "run", "all"] {
		without := {"budgets": {"license": object.remove(row("unlimited").budgets.license, [scope])}}
		not budget.budgets_stated with input as counted([]) with data.policy.budgets as without
	}
}

test_the_last_one_is_left if {
	budget.budget_left({"id": "principal", "used": 99, "amount": 1}) with input as counted([])
		with data.policy.budgets as row(ceiling)
}

test_nothing_else_is_left if {
	every one in [
		{"id": "principal", "used": 100, "amount": 1},
		{"id": "principal", "amount": 1},
		{"id": "principal", "used": null, "amount": 1},
		{"id": "principal", "used": "0", "amount": 1},
		{"id": "principal", "used": 0},
		{"id": "run", "used": 0, "amount": 1},
	] {
		not budget.budget_left(one) with input as counted([]) with data.policy.budgets as row(ceiling)
	}
}
