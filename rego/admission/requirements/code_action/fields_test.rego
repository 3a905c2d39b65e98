package admission.requirements.code_action.fields_test

import data.admission.requirements.code_action.fields
import future.keywords.not

_policy := {"code": {
	"entrypoints": ["main.py"],
	"max_seconds": 25,
	"hints": {
		"network_access": ["denied", "none", "off"],
		"max_code_chars": {"default": 2400, "minimum": 200, "maximum": 8000},
	},
}}

_input := {
	"elapsed_ms": 25000,
	"hints": {
		"network_access": {"stated": true, "value": "off"},
		"max_code_chars": {"readable": false},
	},
	"action": {
		"object": true,
		"id": {"text": true, "blank": false, "value": "c1"},
		"language": {"text": true, "blank": false, "value": "python"},
		"entrypoint": {"text": true, "blank": false, "value": "main.py", "separators": false},
		"code": {"text": true, "blank": false, "null_characters": false, "chars": 2400, "sha256": "ab", "hash": "a"},
		"input_payload": {"object": true, "bytes": 2, "sha256": "cd"},
		"unknown_fields": 0,
	},
}

_true(rules) := {name | some name, held in rules; held == true}

_without(path) := json.patch(_input, [{"op": "remove", "path": path}])

_all := {"is_action", "id_stated", "language_stated", "payload_is_object", "no_unknown_fields"}

test_clean if {
	got1 := fields with input as _input with data.policy as _policy
	_true(got1) == _all
}

test_fact_missing if {
	every path, rule in {
		"/action/object": "is_action",
		"/action/id/value": "id_stated",
		"/action/language/value": "language_stated",
		"/action/input_payload/object": "payload_is_object",
		"/action/unknown_fields": "no_unknown_fields",
	} {
		got1 := fields with input as _without(path) with data.policy as _policy
		_true(got1) == _all - {rule}
	}
	got2 := fields with input as {} with data.policy as _policy
	_true(got2) == set()
}

test_values_missing if {
	got1 := fields with input as _input with data.policy as {}
	_true(got1) == _all
}
