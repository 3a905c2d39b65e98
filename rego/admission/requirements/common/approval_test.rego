package admission.requirements.common.approval_test

import data.admission.lib.approval as lib
import data.admission.requirements.common.approval
import future.keywords.not

expected := {"input_digest": "sha256:a", "rules": "sha256:r", "values": "sha256:v"}

granted := {
	"id": "a1",
	"state": "granted",
	"input_digest": "sha256:a",
	"rules": "sha256:r",
	"values": "sha256:v",
	"requester": "pipeline",
	"requester_named": true,
	"requester_via": "token",
	"approver": "user:ana",
	"expires_at": 200,
	"expected": expected,
}

holds("approval_unknown", given) if approval.known(given)

holds("approval_pending", given) if approval.decided(given)

holds("approval_refused", given) if approval.not_refused(given)

holds("approval_used", given) if approval.unused(given)

holds("approval_input_changed", given) if approval.same_input(given)

holds("approval_policy_changed", given) if approval.same_policy(given)

holds("approval_expired", given) if approval.in_time(given)

holds("approval_by_requester", given) if approval.by_another(given)

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
	unknown := {"id": "a1", "expected": expected}
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
		given := object.union(granted, {name: null, "expected": object.union(expected, {name: null})})
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

unnamed := object.union(object.remove(granted, ["requester"]), {"requester_named": false, "requester_via": "loopback"})

only_loopback := {"approvals": {"unnamed_requesters": ["loopback"]}}

test_a_caller_without_a_name_is_approved_as_values_say if {
	refused(unnamed) == set() with input as request with data.policy as only_loopback
	lib.valid(unnamed) with input as request with data.policy as only_loopback
	every policy in [{}, {"approvals": {"unnamed_requesters": []}}, {"approvals": {"unnamed_requesters": ["control"]}}] {
		refused(unnamed) == {"approval_by_requester"} with input as request with data.policy as policy
		not lib.valid(unnamed) with input as request with data.policy as policy
	}
}

test_a_caller_without_a_name_needs_every_fact if {
	every name in ["requester_named", "requester_via", "approver"] {
		every wrong in [null, true, 0, "", [], {}] {
			not lib.by_another(object.union(unnamed, {name: wrong})) with data.policy as only_loopback
		}
		not lib.by_another(object.remove(unnamed, [name])) with data.policy as only_loopback
	}
}

test_a_named_caller_is_never_taken_for_one_without_a_name if {
	self := object.union(granted, {"approver": "pipeline", "requester_via": "loopback"})
	refused(self) == {"approval_by_requester"} with input as request with data.policy as only_loopback
}

test_names_compare_exactly if {
	every approver in ["Pipeline", "pipeline2", "user:pipeline", "pipeline:x"] {
		lib.by_another(object.union(granted, {"approver": approver}))
	}

	# regal ignore:line-length
	every approver in ["pipeline", " pipeline", "pipeline ", "pipe\u200bline", "pipeline\n", "\u00a0pipeline", "pipe  line", ""] {
		not lib.by_another(object.union(granted, {"approver": approver}))
		not lib.by_another(object.union(granted, {"requester": approver, "approver": "pipeline"}))
	}
}
