package admission.requirements.adapter.manifest_test

import data.admission.requirements.adapter.manifest
import future.keywords.not

_input := {
	"enabled": true,
	"source": {"policy_hash": "sha256:aa"},
	"manifest": {
		"bytes": 100,
		"format": 1,
		"id": "contacts",
		"environment_identity": "contacts_sqlite",
		"source_policy_hash": "sha256:aa",
		"supported_operations": [{"id": "tools/list", "name": "tools/list"}],
		"tool_schemas": ["contacts_list"],
		"side_effect_classes": ["contacts_list"],
		"verifier_implications": ["contacts_list"],
		"unknown_fields": [],
	},
}

_policy := {"adapters": {"may_be_enabled": true, "limits": {"manifest_bytes": 100}}}

_all := {
	"enabled", "format_known", "fields_known", "small_enough", "identified", "environment_stated",
	"source_policy_stated", "source_policy_matches", "operations_stated", "schemas_stated", "effects_stated",
	"implications_stated",
}

_rule_of := {
	"enabled": "enabled",
	"source/policy_hash": "source_policy_matches",
	"manifest/bytes": "small_enough",
	"manifest/format": "format_known",
	"manifest/id": "identified",
	"manifest/environment_identity": "environment_stated",
	"manifest/supported_operations": "operations_stated",
	"manifest/tool_schemas": "schemas_stated",
	"manifest/side_effect_classes": "effects_stated",
	"manifest/verifier_implications": "implications_stated",
	"manifest/unknown_fields": "fields_known",
}

_true(rules) := {name | some name, held in rules; held == true}

_replaced(path, value) := json.patch(_input, [{"op": "replace", "path": concat("/", ["", path]), "value": value}])

test_clean if {
	rules := manifest with input as _input with data.policy as _policy
	_true(rules) == _all
}

test_fact_missing if {
	every path, rule in _rule_of {
		rules := manifest with input as json.remove(_input, [path]) with data.policy as _policy
		_true(rules) == _all - {rule}
	}
	hashless := manifest with input as json.remove(_input, ["manifest/source_policy_hash"]) with data.policy as _policy
	_true(hashless) == _all - {"source_policy_stated", "source_policy_matches"}
	nothing := manifest with input as {} with data.policy as _policy
	_true(nothing) == set()
}

test_fact_of_another_type if {
	every path, rule in _rule_of {
		every value in [null, {}] {
			rules := manifest with input as _replaced(path, value) with data.policy as _policy
			_true(rules) == _all - {rule}
		}
	}
}

test_lists_empty if {
	fields := ["supported_operations", "tool_schemas", "side_effect_classes", "verifier_implications"]
	every field in fields {
		path := concat("/", ["manifest", field])
		rules := manifest with input as _replaced(path, []) with data.policy as _policy
		_true(rules) == _all - {_rule_of[path]}
	}
}

test_not_so if {
	every path, change in {
		"enabled": {"value": false, "rule": "enabled"},
		"source/policy_hash": {"value": "sha256:bb", "rule": "source_policy_matches"},
		"manifest/bytes": {"value": 101, "rule": "small_enough"},
		"manifest/format": {"value": 2, "rule": "format_known"},
		"manifest/unknown_fields": {"value": [{"id": "handler"}], "rule": "fields_known"},
	} {
		rules := manifest with input as _replaced(path, change.value) with data.policy as _policy
		_true(rules) == _all - {change.rule}
	}
}

test_values_missing if {
	rules := manifest with input as _input with data.policy as {}
	_true(rules) == _all - {"enabled", "small_enough"}
	every value in [false, null, "true"] {
		policy := {"adapters": {"may_be_enabled": value, "limits": {"manifest_bytes": 100}}}
		forbidden := manifest with input as _input with data.policy as policy
		_true(forbidden) == _all - {"enabled"}
	}
}

test_values_and_hashes_of_another_type if {
	every wrong in [null, true, "", [], {}] {
		policy := {"adapters": {"limits": {"manifest_bytes": wrong}}}
		not manifest.small_enough with input as _input with data.policy as policy
	}
	every wrong in [null, true, 0, [], {}] {
		both := {"source": {"policy_hash": wrong}, "manifest": {"source_policy_hash": wrong}}
		not manifest.source_policy_matches with input as both
	}
}

test_lists_are_lists if {
	every rule in {"operations_stated", "schemas_stated", "effects_stated", "implications_stated"} {
		every wrong in ["read", {"read": "read"}, {"read"}] {
			changes := [{"op": "replace", "path": concat("/", ["", path]), "value": wrong} |
				some path, of in _rule_of
				of == rule
			]
			not manifest[rule] with input as json.patch(_input, changes)
		}
	}
}
