package admission.requirements.common.approval_test

import data.admission.compiled.common
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

request(approvals) := {"point": "license", "now": 100, "approvals": approvals}

codes(given) := found if {
	found := {one.code | some one in approval._findings} with input as request([given])
}

test_a_granted_approval_holds if {
	approval.known(granted)
	approval.decided(granted)
	approval.not_refused(granted)
	approval.unused(granted)
	approval.same_input(granted)
	approval.same_policy(granted)
	approval.in_time(granted) with input as request([granted])
	approval.by_somebody_else(granted)
	codes(granted) == set()
	common.approved with input as request([granted])
}

test_without_an_approval_nothing_is_said_and_nothing_approved if {
	approval._findings == set() with input as request([])
	not common.approved with input as request([])
}

test_two_approvals_approve_nothing if not common.approved with input as request([granted, granted])

test_an_unknown_one if {
	unknown := {"id": "a1", "asked": asked}
	codes(unknown) == {
		"approval_unknown",
		"approval_pending",
		"approval_refused",
		"approval_used",
		"approval_input_changed",
		"approval_policy_changed",
		"approval_expired",
		"approval_by_requester",
	}
	not common.approved with input as request([unknown])
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
		codes(object.union(granted, change)) == {code}
		not common.approved with input as request([object.union(granted, change)])
	}
}

test_other_values_are_another_policy if {
	codes(object.union(granted, {"values": "sha256:w"})) == {"approval_policy_changed"}
}

test_a_missing_fact_never_holds if {
	every name in {"state", "input_digest", "rules", "values", "requester", "approver", "expires_at"} {
		given := object.remove(granted, [name])
		count(codes(given)) > 0
		not common.approved with input as request([given])
	}
}

test_a_fact_of_another_type_never_holds if {
	every name in {"state", "input_digest", "rules", "values", "requester", "approver", "expires_at"} {
		every wrong in [null, true, [], {}] {
			not common.approved with input as request([object.union(granted, {name: wrong})])
		}
	}
}

test_without_a_clock_nothing_is_in_time if {
	codes_without := {one.code | some one in approval._findings} with input as {"approvals": [granted]}
	codes_without == {"approval_expired"}
}
