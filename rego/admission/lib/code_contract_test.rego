package admission.lib.code_contract_test

import data.admission.lib.code_contract
import future.keywords.not

_policy := {"code": {
	"entrypoints": ["main.py"],
	"hints": {"max_code_chars": {"default": 2400, "minimum": 200, "maximum": 8000}},
}}

_input := {
	"hints": {"max_code_chars": {"readable": true, "value": 300}},
	"action": {
		"object": true,
		"id": {"text": true, "blank": false, "value": "c1"},
		"language": {"text": true, "blank": false, "value": "python"},
		"entrypoint": {"text": true, "blank": false, "value": "main.py", "separators": false},
		"code": {
			"text": true, "blank": false, "null_characters": false, "chars": 300, "bytes": 300,
			"sha256": "ab", "hash": "a",
		},
		"input_payload": {"object": true, "bytes": 2, "sha256": "cd"},
		"unknown_fields": 0,
	},
}

_true(rules) := {name | some name, held in rules; held == true}

_all := {
	"is_action", "id_stated", "language_stated", "entrypoint_stated", "code_stated", "code_short_enough",
	"payload_is_object", "entrypoint_is_name", "entrypoint_admitted", "no_unknown_fields", "holds",
}

_faults := {
	"/action/object": {"is_action"},
	"/action/id/text": {"id_stated"},
	"/action/id/blank": {"id_stated"},
	"/action/id/value": {"id_stated"},
	"/action/language/text": {"language_stated"},
	"/action/language/blank": {"language_stated"},
	"/action/language/value": {"language_stated"},
	"/action/entrypoint/text": {"entrypoint_stated"},
	"/action/entrypoint/blank": {"entrypoint_stated"},
	"/action/entrypoint/separators": {"entrypoint_is_name"},
	"/action/entrypoint/value": {"entrypoint_admitted"},
	"/action/code/text": {"code_stated"},
	"/action/code/blank": {"code_stated"},
	"/action/code/null_characters": {"code_stated"},
	"/action/code/sha256": {"code_stated"},
	"/action/code/hash": {"code_stated"},
	"/action/code/chars": {"code_short_enough"},
	"/action/input_payload/object": {"payload_is_object"},
	"/action/input_payload/sha256": {"payload_is_object"},
	"/action/unknown_fields": {"no_unknown_fields"},
	"/hints/max_code_chars/value": {"code_short_enough"},
}

test_clean if {
	got1 := code_contract with input as _input with data.policy as _policy
	_true(got1) == _all
}

test_each_fault if {
	every path, faults in _faults {
		without := json.patch(_input, [{"op": "remove", "path": path}])
		got1 := code_contract with input as without with data.policy as _policy
		_true(got1) == _all - (faults | {"holds"})
		null_instead := json.patch(_input, [{"op": "replace", "path": path, "value": null}])
		got2 := code_contract with input as null_instead with data.policy as _policy
		_true(got2) == _all - (faults | {"holds"})
	}
}

test_bounds if {
	held := {chars |
		some chars in [0, 1, 300, 301]
		request := json.patch(_input, [{"op": "replace", "path": "/action/code/chars", "value": chars}])
		code_contract.code_short_enough with input as request with data.policy as _policy
	}
	held == {1, 300}
	every chars in [1, "1"] {
		request := json.patch(_input, [
			{"op": "replace", "path": "/action/code/chars", "value": chars},
			{"op": "replace", "path": "/hints/max_code_chars", "value": {"readable": false}},
		])

		# regal ignore:non-loop-expression
		policy := {"code": {"hints": {"max_code_chars": {"default": "many"}}}}
		not code_contract.code_short_enough with input as request with data.policy as policy
	}
}

test_values_missing if {
	not code_contract.entrypoint_admitted with input as _input with data.policy as {}
	not code_contract.code_short_enough with input as _input with data.policy as {}
	not code_contract.holds with input as _input with data.policy as {}
}
