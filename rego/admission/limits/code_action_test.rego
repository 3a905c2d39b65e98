package admission.limits.code_action_test

import data.admission.limits.code_action
import future.keywords.not

_policy := {"code": {
	"languages": ["python", "javascript"],
	"execution": {"python": "standard"},
	"entrypoints": ["main.py"],
	"max_seconds": 25,
	"hints": {
		"max_code_chars": {"default": 2400, "minimum": 200, "maximum": 8000},
		"exec_timeout_seconds": {"default": 2, "minimum": 0.2, "maximum": 20},
	},
}}

_input := {
	"hints": {
		"allowed_languages": {"readable": true, "values": ["python"]},
		"max_code_chars": {"readable": false},
		"exec_timeout_seconds": {"readable": true, "value": 3.5},
	},
	"action": {
		"object": true,
		"id": {"text": true, "blank": false, "value": "c1"},
		"language": {"text": true, "blank": false, "value": "python"},
		"entrypoint": {"text": true, "blank": false, "value": "main.py", "separators": false},
		"code": {"text": true, "blank": false, "null_characters": false, "chars": 30, "sha256": "ab", "hash": "a"},
		"input_payload": {"object": true, "bytes": 2, "sha256": "cd"},
		"unknown_fields": 0,
	},
}

test_complete if {
	limits := code_action.limits with input as _input with data.policy as _policy
	limits == {
		"id": "c1",
		"language": "python",
		"entrypoint": "main.py",
		"code_sha256": "ab",
		"code_hash": "a",
		"chars": 30,
		"max_code_chars": 2400,
		"exec_timeout_seconds": 3.5,
		"max_seconds": 25,
		"allowed_languages_policy": ["python"],
		"allowed_languages_execution": ["python"],
	}
}

test_incomplete if {
	paths := [
		"action/object", "action/id/value", "action/language", "action/entrypoint/separators", "action/code/sha256",
		"action/code/hash", "action/code/chars", "action/input_payload", "action/unknown_fields", "hints/max_code_chars",
		"hints/exec_timeout_seconds/value", "hints/allowed_languages/readable", "hints", "action",
	]
	every path in paths {
		not code_action.limits with input as json.remove(_input, [path]) with data.policy as _policy
	}
}

test_values_missing if {
	paths := [
		"code/languages", "code/execution", "code/entrypoints", "code/max_seconds", "code/hints/max_code_chars/default",
		"code/hints/exec_timeout_seconds/maximum", "code",
	]
	every path in paths {
		not code_action.limits with input as _input with data.policy as json.remove(_policy, [path])
	}
}
