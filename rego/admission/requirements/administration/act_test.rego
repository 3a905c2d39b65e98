package admission.requirements.administration.act_test

import data.admission.requirements.administration.act
import future.keywords.not

_policy := {"administration": {
	"acts": {"grant_approval": ["process", "token"], "issue_token": ["control", "certificate"]},
	"reason_optional": ["issue_token"],
}}

_grant := {"act": "grant_approval", "id": "a1", "reason": "seen", "approval": {"point": "license"}}

_token := {"via": "token", "principal": "officer", "points": [], "approves": ["license"]}

_in_scope(request, caller) if {
	# regal ignore:external-reference,with-outside-test-context
	act.act_in_scope with input as object.union(request, {"caller": caller}) with data.policy as _policy
}

test_act_in_scope if {
	_in_scope(_grant, {"via": "process"})
	_in_scope(_grant, _token)
	_in_scope({"act": "issue_token"}, {"via": "control"})
	every caller in [{"via": "control"}, {"via": "loopback"}, {"via": null}, {}, object.remove(_token, ["approves"])] {
		not _in_scope(_grant, caller)
	}
	every approves in [[], ["source"], ["License"], null, "license"] {
		not _in_scope(_grant, object.union(_token, {"approves": approves}))
	}
	not _in_scope({"act": "issue_token"}, {"via": "certificate"}) # in the values, and no way of acting
	not _in_scope({"act": "revoke_token"}, {"via": "control"})
	not _in_scope({}, {"via": "control"})
}

test_act_in_scope_without_values if {
	every policy in [{}, {"administration": {"acts": {}}}, {"administration": {"acts": {"grant_approval": []}}}] {
		every caller in [{"via": "process"}, _token] {
			not act.act_in_scope with input as object.union(_grant, {"caller": caller}) with data.policy as policy
		}
	}
}

test_actor_named if {
	act.actor_named with input as {"caller": {"principal": "user:ana"}}
	every principal in [null, true, 0, "", " ", " user:ana", "user:ana\n", "us\u200ber", [], {}] {
		not act.actor_named with input as {"caller": {"principal": principal}}
	}
	not act.actor_named with input as {"caller": {}}
}

test_act_complete if {
	every one in ["grant_approval", "refuse_approval", "revoke_token", "revoke_prefix"] {
		act.act_complete with input as {"act": one, "id": "a1"}
		not act.act_complete with input as {"act": one}
	}
	act.act_complete with input as {"act": "issue_token", "id": "a1", "scope": {}}
	act.act_complete with input as {"act": "approve_prefix", "id": "a1", "prefix": {}}
	release := {"digest": "d", "name": "n", "sequence": 1}
	act.act_complete with input as {"act": "approve_release", "id": "a1", "release": release}
	every one in ["issue_token", "approve_prefix", "other"] {
		not act.act_complete with input as {"act": one, "id": "a1", "release": release}
		not act.act_complete with input as {"act": one, "id": "a1"}
		not act.act_complete with input as {"act": one, "scope": {}, "prefix": {}}
		not act.act_complete with input as {"act": one, "id": "a1", "scope": null, "prefix": null}
	}
}

test_what_completes_one_act_completes_no_other if {
	every one in ["approve_prefix", "other", null] {
		not act.act_complete with input as {"act": one, "id": "a1", "scope": {}}
	}
	every one in ["issue_token", "other", null] {
		not act.act_complete with input as {"act": one, "id": "a1", "prefix": {}}
		every stop in [{"scope": "all", "name": ""}, {"scope": "tool", "name": "x"}] {
			not act.act_complete with input as {"act": one, "id": "a1", "stop": stop}
		}
	}
}

test_a_stop_of_everything_has_no_name_and_any_other_has_one if {
	stop := {"act": "stop", "id": "a1"}
	act.act_complete with input as object.union(stop, {"stop": {"scope": "all", "name": ""}})
	every scope in ["tool", "principal"] {
		act.act_complete with input as object.union(stop, {"stop": {"scope": scope, "name": "x"}})
		every name in ["", null, 0, {}] {
			not act.act_complete with input as object.union(stop, {"stop": {"scope": scope, "name": name}})
		}
	}
	every wrong in [{"scope": "all"}, {"scope": "all", "name": "x"}, {"scope": "other", "name": "x"}, {}, null] {
		not act.act_complete with input as object.union(stop, {"stop": wrong})
	}
	not act.act_complete with input as {"act": "stop", "stop": {"scope": "all", "name": ""}}
	not act.act_complete with input as {"act": "stop", "stop": {"scope": "tool", "name": "x"}}
}

test_only_a_token_approves_by_its_points if {
	every via in ["certificate", "loopback", null] {
		not _in_scope(_grant, object.union(_token, {"via": via}))
	}
}

test_reason_stated if {
	act.reason_stated with input as _grant with data.policy as _policy
	act.reason_stated with input as {"act": "issue_token"} with data.policy as _policy
	every reason in [null, true, 0, "", [], {}] {
		not act.reason_stated with input as object.union(_grant, {"reason": reason}) with data.policy as _policy
	}
	not act.reason_stated with input as object.remove(_grant, ["reason"]) with data.policy as _policy
	not act.reason_stated with input as {"act": "issue_token"} with data.policy as {}
}

test_the_approval_of_a_release_names_it if {
	release := {"name": "house", "sequence": 2, "author": "user:ana", "digest": "sha256:1"}
	act.act_complete with input as {"act": "approve_release", "id": "a1", "release": release}
	every name in ["name", "sequence", "digest"] {
		broken := object.remove(release, [name])
		not act.act_complete with input as {"act": "approve_release", "id": "a1", "release": broken}
	}
	not act.act_complete with input as {"act": "approve_release", "release": release}
	not act.act_complete with input as {"act": "approve_release", "id": "a1", "release": null}
}
