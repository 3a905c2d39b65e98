package admission.requirements.common.approval_test

import data.admission.lib.approval as lib
import data.admission.requirements.common.approval
import future.keywords.not

asked := {"input_digest": "sha256:a", "rules": "sha256:r", "values": "sha256:v"}

granted := {
	"id": "a1",
	"state": "granted",
	"input_digest": "sha256:a",
	"rules": "sha256:r",
	"values": "sha256:v",
	"requester": "pipeline",
	"approver": "user:ana",
	"expires_at": 200,
	"asked": asked,
}

holds("approval_unknown", given) if approval.known(given)

holds("approval_pending", given) if approval.decided(given)

holds("approval_refused", given) if approval.not_refused(given)

holds("approval_used", given) if approval.unused(given)

holds("approval_input_changed", given) if approval.same_input(given)

holds("approval_policy_changed", given) if approval.same_policy(given)

holds("approval_expired", given) if approval.in_time(given)

holds("approval_by_requester", given) if approval.by_somebody_else(given)

every_code := {
	"approval_unknown",
	"approval_pending",
	"approval_refused",
	"approval_used",
	"approval_input_changed",
	"approval_policy_changed",
	"approval_expired",
	"approval_by_requester",
}

refused(given) := {code | some code in every_code; not holds(code, given)}

request := {"point": "license", "now": 100}

test_a_granted_approval_holds if {
	refused(granted) == set() with input as request
	lib.valid(granted) with input as request
}

test_an_unknown_one if {
	unknown := {"id": "a1", "asked": asked}
	refused(unknown) == every_code with input as request
	not lib.valid(unknown) with input as request
}

changed := {
	"approval_pending": {"state": "requested"},
	"approval_refused": {"state": "refused"},
	"approval_used": {"state": "used"},
	"approval_input_changed": {"input_digest": "sha256:b"},
	"approval_policy_changed": {"rules": "sha256:s"},
	"approval_expired": {"expires_at": 100},
	"approval_by_requester": {"approver": "pipeline"},
}

test_each_way_not_to_hold_has_its_own_code if {
	every code, change in changed {
		given := object.union(granted, change)
		refused(given) == {code} with input as request
		not lib.valid(given) with input as request
	}
}

test_other_values_are_another_policy if {
	refused(object.union(granted, {"values": "sha256:w"})) == {"approval_policy_changed"} with input as request
}

test_a_missing_fact_never_holds if {
	every name in {"state", "input_digest", "rules", "values", "requester", "approver", "expires_at"} {
		given := object.remove(granted, [name])
		refused(given) != set() with input as request
		not lib.valid(given) with input as request
	}
}

test_a_fact_of_another_type_never_holds if {
	every name in {"state", "input_digest", "rules", "values", "requester", "approver", "expires_at"} {
		every wrong in [null, true, [], {}] {
			not lib.valid(object.union(granted, {name: wrong})) with input as request
		}
	}
}

test_nothing_is_equal_to_a_fact_of_another_type if {
	every name in {"input_digest", "rules", "values"} {
		given := object.union(granted, {name: null, "asked": object.union(asked, {name: null})})
		not lib.valid(given) with input as request
	}
}

test_a_clock_that_is_no_number_is_none if {
	every now in [null, false] {
		not lib.in_time(granted) with input as {"point": "license", "now": now}
	}
}

test_without_a_clock_nothing_is_in_time if {
	refused(granted) == {"approval_expired"} with input as {"point": "license"}
}
