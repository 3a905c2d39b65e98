package admission.requirements.code_scan.name_test

import data.admission.requirements.code_scan.name
import future.keywords.not

_policy := {"code": {"scan": {"python": {
	"builtins": ["print"],
	"denied_calls": ["eval"],
	"denied_names": ["os"],
	"denied_attributes": ["system"],
	"input_reads": 1,
}}}}

_input := {"scan": {"language": "python", "imports": [{"id": "json", "kind": "module"}]}}

test_call_allowed if {
	found := {"id": "print", "by_name": true, "by_attribute": false, "builtin": true}
	name.call_allowed(found) with input as _input with data.policy as _policy
	not name.call_allowed(found) with input as _input with data.policy as {}
	not name.call_allowed(found) with input as {} with data.policy as _policy
	every other in [
		{"id": "eval", "by_name": true, "by_attribute": false, "builtin": true},
		{"id": "own"},
		{},
	] {
		not name.call_allowed(other) with input as _input with data.policy as _policy
	}
}

test_attribute_allowed if {
	found := {"id": "loads", "dunder": false}
	name.attribute_allowed(found) with input as _input with data.policy as _policy
	not name.attribute_allowed(found) with input as _input with data.policy as {}
	not name.attribute_allowed(found) with input as {} with data.policy as _policy
	every other in [
		{"id": "system", "dunder": false},
		{"id": "__x", "dunder": true},
		{"id": "loads"},
		{},
	] {
		not name.attribute_allowed(other) with input as _input with data.policy as _policy
	}
}

test_name_allowed if {
	found := {"id": "print", "variable": true, "as_value": true, "dunder": false, "builtin": true}
	name.name_allowed(found) with input as _input with data.policy as _policy
	not name.name_allowed(found) with input as _input with data.policy as {}
	not name.name_allowed(found) with input as {} with data.policy as _policy
	every other in [
		{"id": "os", "variable": true, "as_value": true, "dunder": false, "builtin": false},
		{"id": "print"},
		{},
	] {
		not name.name_allowed(other) with input as _input with data.policy as _policy
	}
}

test_input_read_within if {
	held := {[calls, values] |
		some calls in [0, 1, 2, null]
		some values in [0, 1, null]
		scan := {"language": "python", "input_calls": calls, "input_values": values}
		name.input_read_within with input as {"scan": scan} with data.policy as _policy
	}
	held == {[0, 0], [1, 0]}
	not name.input_read_within with input as _input with data.policy as _policy
	read := {"scan": {"language": "python", "input_calls": 0, "input_values": 0}}
	not name.input_read_within with input as read with data.policy as {}
}
