package admission.requirements.administration.approval_test

import data.admission.requirements.administration.approval
import future.keywords.not

_policy := {"approvals": {"unnamed_requesters": ["loopback"]}}

_row := {
	"point": "license",
	"state": "requested",
	"expires_at": 200,
	"requester": "pipeline",
	"requester_named": true,
	"requester_via": "token",
}

_clean := {"act": "grant_approval", "now": 100, "approval": _row, "caller": {"principal": "user:ana"}}

_with(change) := object.union(_clean, {"approval": change})

_others := ["issue_token", "revoke_token", "approve_prefix", "revoke_prefix"]

_wrong := [null, true, 0, "", [], {}]

test_request_open if {
	approval.request_open with input as _clean
	every state in ["granted", "refused", "used", null, true, 0, "", [], {}] {
		not approval.request_open with input as _with({"state": state})
	}
	not approval.request_open with input as object.remove(_clean, ["approval"])
}

test_request_in_time if {
	approval.request_in_time with input as _clean
	every expires_at in [100, 99, null, true, "", [], {}] {
		not approval.request_in_time with input as _with({"expires_at": expires_at})
	}
	not approval.request_in_time with input as object.remove(_clean, ["now"])
	not approval.request_in_time with input as object.remove(_clean, ["approval"])
}

test_approver_differs if {
	approval.approver_differs with input as _clean with data.policy as _policy
	not approval.approver_differs with input as _with({"requester": "user:ana"}) with data.policy as _policy
	approval.approver_differs with input as _with({"requester": "user:Ana"}) with data.policy as _policy
	every wrong in _wrong {
		not approval.approver_differs with input as _with({"requester": wrong}) with data.policy as _policy
		not approval.approver_differs with input as object.union(_clean, {"caller": {"principal": wrong}})
			with data.policy as _policy
	}
	not approval.approver_differs with input as object.remove(_clean, ["approval"]) with data.policy as _policy
}

test_approver_of_a_release_differs_from_its_author if {
	release := {"act": "approve_release", "release": {"author": "user:ana"}, "caller": {"principal": "user:bob"}}
	approval.approver_differs with input as release with data.policy as _policy
	not approval.approver_differs with input as object.union(release, {"caller": {"principal": "user:ana"}})
		with data.policy as _policy
	not approval.approver_differs with input as object.union(release, {"act": "grant_approval"})
		with data.policy as _policy
}

test_approver_of_a_requester_without_a_name if {
	unnamed := object.union(
		object.remove(_clean, ["approval"]),
		{"approval": {"requester_named": false, "requester_via": "loopback"}},
	)
	approval.approver_differs with input as unnamed with data.policy as _policy
	not approval.approver_differs with input as unnamed with data.policy as {}
	not approval.approver_differs with input as unnamed with data.policy as {"approvals": {"unnamed_requesters": []}}
}

test_the_requester_may_refuse if {
	own := object.union(_with({"requester": "user:ana"}), {"act": "refuse_approval"})
	approval.approver_differs with input as own
}

test_who_approves_for_a_requester_without_a_name_is_named if {
	# regal ignore:line-length
	unnamed := object.union(_clean, {"approval": {"requester": null, "requester_named": false, "requester_via": "loopback"}})
	approval.approver_differs with input as unnamed with data.policy as _policy
	every principal in [null, "", " user:ana"] {
		not approval.approver_differs with input as object.union(unnamed, {"caller": {"principal": principal}})
			with data.policy as _policy
	}
	every act in _wrong {
		not approval.approver_differs with input as object.union(unnamed, {"act": act}) with data.policy as _policy
	}
}

test_other_acts_are_not_about_approvals if {
	every act in _others {
		approval.request_open with input as {"act": act}
		approval.request_in_time with input as {"act": act}
		approval.approver_differs with input as {"act": act}
	}
	every act in _wrong {
		not approval.request_open with input as object.union(_clean, {"act": act})
		not approval.request_in_time with input as object.union(_clean, {"act": act})
		not approval.approver_differs with input as object.union(_clean, {"act": act})
	}
}

test_a_release_is_approved_by_another_than_its_author if {
	release := {"name": "house", "sequence": 2, "author": "user:ana", "digest": "sha256:1"}
	act := {"act": "approve_release", "release": release, "now": 100}
	approval.request_open with input as act
	approval.request_in_time with input as act
	approval.approver_differs with input as object.union(act, {"caller": {"principal": "user:ben"}})
	not approval.approver_differs with input as object.union(act, {"caller": {"principal": "user:ana"}})
	every wrong in [null, true, 0, "", [], {}] {
		not approval.approver_differs with input as object.union(act, {"caller": {"principal": wrong}})
		broken := object.union(act, {"release": object.union(release, {"author": wrong})})
		not approval.approver_differs with input as object.union(broken, {"caller": {"principal": "user:ben"}})
	}
}
