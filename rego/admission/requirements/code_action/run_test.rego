package admission.requirements.code_action.run_test

import data.admission.requirements.code_action.run
import future.keywords.not

_policy := {"code": {
	"entrypoints": ["main.py"],
	"max_seconds": 25,
	"attempts": 3,
	"hints": {
		"network_access": ["denied", "none", "off"],
		"max_code_chars": {"default": 2400, "minimum": 200, "maximum": 8000},
	},
}}

_input := {
	"elapsed_ms": 25000,
	"task": {"stated": true, "value": "repair-1"},
	"attempts": [{"id": "a"}, {"id": "b"}],
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

_all := {"network_denied", "in_time", "attempts_left"}

test_clean if {
	got1 := run with input as _input with data.policy as _policy
	_true(got1) == _all
}

test_fact_missing if {
	every path, rule in {
		"/hints/network_access/value": "network_denied",
		"/hints/network_access/stated": "network_denied",
		"/elapsed_ms": "in_time",
		"/task/stated": "attempts_left",
		"/task/value": "attempts_left",
		"/attempts": "attempts_left",
	} {
		got1 := run with input as _without(path) with data.policy as _policy
		_true(got1) == _all - {rule}
	}
	got2 := run with input as {} with data.policy as _policy
	_true(got2) == set()
}

test_values_missing if {
	got1 := run with input as _input with data.policy as {}
	_true(got1) == set()
}

test_the_last_attempt if {
	spent := object.union(_input, {"attempts": [{"id": "a"}, {"id": "b"}, {"id": "c"}]})
	not run.attempts_left with input as spent with data.policy as _policy
	alone := object.union(_input, {"attempts": [], "task": {"stated": false}})
	run.attempts_left with input as alone with data.policy as _policy
}
