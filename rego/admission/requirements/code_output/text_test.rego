package admission.requirements.code_output.text_test

import data.admission.requirements.code_output.text
import future.keywords.not

_policy := {"code": {
	"stdout_bytes": 40,
	"stderr_bytes": 40,
	"contracts": {"m": {
		"fields": [
			{
				"name": "rate", "type": "number", "minimum": 0, "maximum": 1, "decimals": 6,
				"percent": {"name": "rate_pct", "decimals": 2},
			},
			{"name": "share", "type": "number", "minimum": 0, "maximum": 1, "decimals": 6},
			{"name": "alerts", "type": "integer", "minimum": 0, "maximum": "any"},
			{"name": "latency", "type": "convertible", "minimum": "any", "maximum": 900, "decimals": 2},
			{"name": "severity", "type": "choice", "one_of": ["P1", "P2"]},
			{"name": "incident", "type": "request"},
			{"name": "region", "type": "request"},
		],
		"echoed": [
			{"name": "date", "case": "as_is"},
			{"name": "region", "case": "upper"},
			{"name": "incident", "case": "as_is"},
		],
		"answer": "{rate_pct} in {region}",
	}},
}}

_input := {
	"contract": "m",
	"run": {"status": "ok", "stdout_bytes": 40, "stderr_bytes": 40, "exits": [{"id": "0", "code": 0}]},
	"output": {
		"bytes": 40, "blank": false, "parsed": true, "object": true,
		"fields": [
			{"id": "rate", "present": true, "kind": "number", "number": 0.5},
			{"id": "share", "present": true, "kind": "integer", "number": 1},
			{"id": "alerts", "present": true, "kind": "integer", "number": 7},
			{"id": "latency", "present": true, "kind": "text", "number": 1.5, "sha256": "x", "upper_sha256": "x"},
			{
				"id": "severity", "present": true, "kind": "text",
				"sha256": crypto.sha256("P2"), "upper_sha256": crypto.sha256("P2"),
			},
			{
				"id": "incident", "present": true, "kind": "text",
				"sha256": crypto.sha256("inc-1"), "upper_sha256": crypto.sha256("INC-1"),
			},
			{
				"id": "region", "present": true, "kind": "text",
				"sha256": crypto.sha256("us"), "upper_sha256": crypto.sha256("US"),
			},
		],
	},
	"echoed": [
		{"id": "date", "text": "2026-03-07", "upper": "2026-03-07"},
		{"id": "region", "text": "Us", "upper": "US"},
		{"id": "incident", "text": "inc-1", "upper": "INC-1"},
	],
}

_set(path, value) := json.patch(_input, [{"op": "replace", "path": path, "value": value}])

_without(path) := json.patch(_input, [{"op": "remove", "path": path}])

_true(rules) := {name | some name, held in rules; held == true}

_all := {"printed", "is_json", "is_an_object", "complete"}

test_clean if {
	got1 := text with input as _input with data.policy as _policy
	_true(got1) == _all
}

test_each_way_not_to_hold if {
	got1 := text with input as _set("/output/blank", true) with data.policy as _policy
	_true(got1) == _all - {"printed"}
	got2 := text with input as _set("/output/parsed", false) with data.policy as _policy
	_true(got2) == _all - {"is_json"}
	got3 := text with input as _set("/output/object", false) with data.policy as _policy
	_true(got3) == _all - {"is_an_object"}
	got4 := text with input as _set("/output/fields/2/present", false) with data.policy as _policy
	_true(got4) == _all - {"complete"}
	got5 := text with input as _without("/output/fields/2") with data.policy as _policy
	_true(got5) == _all - {"complete"}
	got6 := text with input as _set("/output/fields", []) with data.policy as _policy
	_true(got6) == _all - {"complete"}
}

test_fact_missing if {
	got1 := text with input as _without("/output") with data.policy as _policy
	_true(got1) == set()
	got2 := text with input as _set("/output/blank", null) with data.policy as _policy
	_true(got2) == _all - {"printed"}
	got3 := text with input as {} with data.policy as _policy
	_true(got3) == set()
}

test_a_failed_program_is_not_told_twice if {
	got1 := text with input as _set("/run/exits/0/code", 3) with data.policy as {}
	_true(got1) == _all
}

test_whatever_a_failed_program_printed_is_not_told_besides if {
	failed := json.patch(_set("/run/exits/0/code", 3), [
		{"op": "replace", "path": "/output/blank", "value": true},
		{"op": "replace", "path": "/output/parsed", "value": false},
		{"op": "replace", "path": "/output/object", "value": false},
		{"op": "replace", "path": "/output/fields", "value": []},
	])
	got1 := text with input as failed with data.policy as _policy
	_true(got1) == _all
}

test_values_missing if {
	got1 := text with input as _input with data.policy as {}
	_true(got1) == _all - {"complete"}
}

_free := {"code": {
	"stdout_bytes": 9, "stderr_bytes": 8,
	"contracts": {"t": {"text": {"stdout_bytes": 50, "stderr_bytes": 40}, "fields": [], "echoed": [], "answer": "text"}},
}}

_text := object.union(_input, {"contract": "t", "output": {
	"bytes": 50, "sha256": "x", "blank": true, "parsed": false, "object": false, "fields": [],
}})

test_text_need_be_no_json if {
	got1 := text with input as _text with data.policy as _free
	_true(got1) == _all
	got2 := text with input as object.union(_text, {"contract": "m"}) with data.policy as _policy
	_true(got2) == set()
}
