package admission.requirements.release.security_test

import data.admission.requirements.release.security
import future.keywords.not

_policy := {"release": {
	"security_tests": {"SEC-01": "ACE", "SEC-05": "DoS"},
	"stages": {"preview": {"security_tests": "optional"}, "production": {"security_tests": "required"}},
	"features": {"provisioner": {"security_tests": "required"}, "colors": {"security_tests": "optional"}},
}}

_tests := [
	{"id": "SEC-01", "category": "ACE", "passed": true},
	{"id": "SEC-05", "category": "DoS", "passed": true},
]

test_stage_known if {
	security.stage_known with input as {"stage": "preview"} with data.policy as _policy
	not security.stage_known with input as {"stage": "yolo"} with data.policy as _policy
	not security.stage_known with input as {} with data.policy as _policy
	not security.stage_known with input as {"stage": "preview"} with data.policy as {}
}

test_feature_known if {
	security.feature_known({"id": "colors"}) with data.policy as _policy
	not security.feature_known({"id": "teleporter"}) with data.policy as _policy
	not security.feature_known({}) with data.policy as _policy
	not security.feature_known({"id": "colors"}) with data.policy as {}
}

test_listed if {
	every one in _tests {
		security.listed(one) with data.policy as _policy
		not security.listed(one) with data.policy as {}
		not security.listed(object.union(one, {"category": "other"})) with data.policy as _policy
		not security.listed(json.remove(one, ["category"])) with data.policy as _policy
		not security.listed(object.union(one, {"id": "SEC-99"})) with data.policy as _policy
	}
}

test_succeeded if {
	security.succeeded({"passed": true})
	not security.succeeded({"passed": false})
	not security.succeeded({})
}

test_tests_complete if {
	production := {"stage": "production", "features": [], "security": _tests}
	security.tests_complete with input as production with data.policy as _policy
	not security.tests_complete with input as production with data.policy as {}
	every change in [{"security": [_tests[0]]}, {"security": []}, {"security": null}] {
		not security.tests_complete with input as object.union(production, change) with data.policy as _policy
	}
	preview := {"stage": "preview", "features": [{"id": "colors"}], "security": []}
	security.tests_complete with input as preview with data.policy as _policy
	every change in [
		{"features": [{"id": "provisioner"}]}, {"features": [{}]}, {"features": null}, {"features": {}}, {"stage": null},
		{"features": [{"id": "colors"}, {"id": "provisioner"}]},
	] {
		not security.tests_complete with input as object.union(preview, change) with data.policy as _policy
	}
}

test_no_category_is_not_the_same_category if {
	every wrong in [null, true, 0, [], {}] {
		policy := {"release": {"security_tests": {"SEC-01": wrong}}}
		not security.listed({"id": "SEC-01", "category": wrong}) with data.policy as policy
	}
}

test_without_tests_none_are_complete if {
	production := {"stage": "production", "features": [], "security": _tests}
	every empty in [{}, [], ""] {
		policy := {"release": {"security_tests": empty}}
		not security.tests_complete with input as production with data.policy as policy
	}
}
