package admission.requirements.administration.scope_test

import data.admission.requirements.administration.scope
import future.keywords.not

_policy := {"administration": {"token_seconds_max": 100}}

_clean := {"principal": "pipeline", "points": ["license"], "approves": [], "seconds": 100}

_issue(change) := {"act": "issue_token", "scope": object.union(_clean, change)}

_others := ["grant_approval", "refuse_approval", "revoke_token", "approve_prefix", "revoke_prefix"]

_wrong := [null, true, 0, "", [], {}]

test_principal_distinct if {
	every principal in ["pipeline", "user:ana", "officer@example.org", "CN=x, O=Example"] {
		scope.principal_distinct with input as _issue({"principal": principal})
	}
	every principal in ["pipeline ", " pipeline", "a  b", "a\nb", "\u043efficer", "a\u00a0b", "caf\u00e9"] {
		not scope.principal_distinct with input as _issue({"principal": principal})
	}
	every wrong in _wrong { not scope.principal_distinct with input as _issue({"principal": wrong}) }
}

test_token_has_point if {
	scope.token_has_point with input as _issue({})
	scope.token_has_point with input as _issue({"points": [], "approves": ["license"]})
	every wrong in _wrong { not scope.token_has_point with input as _issue({"points": wrong, "approves": wrong}) }
}

test_points_known if {
	scope.points_known with input as {"unknown_points": []}
	not scope.points_known with input as {}
	every unknown in [null, {}, "", 0, [{"id": "licence"}], [{}], [null]] {
		not scope.points_known with input as {"unknown_points": unknown}
	}
}

test_token_id_fits if {
	scope.token_id_fits with input as {"act": "issue_token", "id": "0a1b2c3d"}
	every id in ["0a1b2c3", "0a1b2c3d4", "0A1B2C3D", "0a1b2c3d\n", " 0a1b2c3d", "0a1b2c3g"] {
		not scope.token_id_fits with input as {"act": "issue_token", "id": id}
	}
	every wrong in _wrong { not scope.token_id_fits with input as {"act": "issue_token", "id": wrong} }
	not scope.token_id_fits with input as {"act": "issue_token"}
}

test_token_ends if {
	scope.token_ends with input as _issue({}) with data.policy as _policy
	every seconds in [101, 0, -1, null, true, "", [], {}] {
		not scope.token_ends with input as _issue({"seconds": seconds}) with data.policy as _policy
	}
	every policy in [{}, {"administration": {}}] {
		not scope.token_ends with input as _issue({}) with data.policy as policy
	}
}

test_an_act_that_is_none_issues_none if {
	every act in _wrong {
		request := object.union(_issue({"approves": ["license"]}), {"act": act})
		not scope.principal_distinct with input as request
		not scope.token_has_point with input as request
		not scope.token_has_point with input as object.union(request, {"scope": {"points": []}})
		not scope.token_has_point with input as object.union(request, {"scope": {"approves": []}})
		not scope.token_ends with input as request with data.policy as _policy
		not scope.token_id_fits with input as {"act": act, "id": "0a1b2c3d"}
	}
	many := {"administration": {"token_seconds_max": "many"}}
	not scope.token_ends with input as _issue({"seconds": "1"}) with data.policy as many
}

test_points_are_a_list if {
	every points in ["license", {"a": "license"}] {
		not scope.token_has_point with input as {"act": "issue_token", "scope": {"points": points}}
		not scope.token_has_point with input as {"act": "issue_token", "scope": {"approves": points}}
	}
}

test_other_acts_issue_no_token if {
	every act in _others {
		scope.principal_distinct with input as {"act": act}
		scope.token_has_point with input as {"act": act}
		scope.token_ends with input as {"act": act}
		scope.token_id_fits with input as {"act": act}
	}
	every act in ["issue_token", null, true, 0, "", [], {}] {
		not scope.principal_distinct with input as {"act": act}
		not scope.token_has_point with input as {"act": act}
		not scope.token_ends with input as {"act": act}
		not scope.token_id_fits with input as {"act": act}
	}
}
