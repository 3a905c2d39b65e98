package admission.limits.code_output_test

import data.admission.limits.code_output
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

test_complete if {
	limits := code_output.limits with input as _input with data.policy as _policy
	limits == {
		"contract": "m",
		"result": [
			{
				"name": "rate", "kind": "rate", "value": 0.5, "decimals": 6,
				"percent": {"name": "rate_pct", "decimals": 2},
			},
			{"name": "share", "kind": "number", "value": 1, "decimals": 6},
			{"name": "alerts", "kind": "integer", "value": 7},
			{"name": "latency", "kind": "rounded", "value": 1.5, "decimals": 2},
			{"name": "severity", "kind": "choice", "value": "P2"},
			{"name": "incident", "kind": "request", "value": "inc-1"},
			{"name": "region", "kind": "request", "value": "US"},
		],
		"echoed": [
			{"name": "date", "value": "2026-03-07"},
			{"name": "region", "value": "US"},
			{"name": "incident", "value": "inc-1"},
		],
		"answer": "{rate_pct} in {region}",
		"artifacts": [],
		"printed": [],
	}
}

test_files if {
	files := [
		{"id": "a", "bytes": 1, "secret": false},
		{"id": "b", "bytes": 1, "secret": true},
		{"id": "c", "bytes": 1},
	]
	left := object.union(_input, {"artifacts": files})
	known := object.union(_policy, {"secrets": {"forms": {"own": {}}}})
	code_output.limits.artifacts == ["a"] with input as left with data.policy as known
	code_output.limits.artifacts == [] with input as left with data.policy as _policy
}

test_incomplete if {
	paths := [
		"/contract", "/run/status", "/run/exits", "/run/exits/0", "/run/exits/0/code", "/output/fields/0",
		"/output/fields/0/number", "/output/fields/4/sha256", "/output/fields/6/upper_sha256", "/echoed/0",
		"/echoed/1/upper", "/echoed", "/output", "/run",
	]
	every path in paths {
		not code_output.limits with input as _without(path) with data.policy as _policy
	}
	not code_output.limits with input as _set("/run/status", "runtime_error") with data.policy as _policy
	not code_output.limits with input as _set("/run/exits/0/code", 3) with data.policy as _policy
	not code_output.limits with input as _set("/output/fields/0/number", 2) with data.policy as _policy
}

test_values_missing if {
	paths := [
		"fields", "fields/0/decimals", "fields/0/minimum", "fields/0/type", "fields/4/one_of", "echoed",
		"echoed/0/case", "echoed/0/name", "answer",
	]
	every path in paths {
		policy := json.remove(_policy, [concat("/", ["code", "contracts", "m", path])])
		not code_output.limits with input as _input with data.policy as policy
	}
	not code_output.limits with input as _input with data.policy as {}
}

_free := {"code": {
	"stdout_bytes": 9, "stderr_bytes": 8,
	"contracts": {"t": {"text": {"stdout_bytes": 50, "stderr_bytes": 40}, "fields": [], "echoed": [], "answer": "text"}},
}}

_text := object.union(_input, {"contract": "t", "output": {
	"bytes": 50, "sha256": "x", "blank": true, "parsed": false, "object": false, "fields": [],
}})

test_text if {
	limits := code_output.limits with input as _text with data.policy as _free
	limits == {"contract": "t", "result": [], "echoed": [], "answer": "text", "artifacts": [], "printed": ["x"]}
	every path in ["output/sha256", "run/status", "contract"] {
		not code_output.limits with input as json.remove(_text, [path]) with data.policy as _free
	}
	not code_output.limits with input as _text with data.policy as json.remove(_free, ["code/contracts/t/text"])
}

_many := {"code": {"contracts": {"t": {
	"fields": [
		{"name": "note", "type": "text", "characters": 3},
		{"name": "rows", "type": "table", "least": 0, "most": 2, "columns": [
			{"name": "who", "type": "text", "characters": 3},
		]},
	],
	"echoed": [],
	"answer": "written",
}}}}

_content := {
	"contract": "t",
	"run": {"status": "ok", "stdout_bytes": 4, "stderr_bytes": 0, "exits": [{"id": "0", "code": 0}]},
	"artifacts": [],
	"echoed": [],
	"output": {"sha256": "d", "fields": [
		{"id": "note", "present": true, "kind": "text", "characters": 3, "content": "c1"},
		{"id": "rows", "present": true, "kind": "list", "entries": 1, "rows": 1, "content": "c2"},
		{"id": "rows.who", "present": true, "column": {
			"missing": 0, "values": 1, "strings": 1, "longest": 3,
		}},
	]},
}

test_content_is_known_by_its_digest if {
	code_output.limits.result == [
		{"name": "note", "kind": "text", "columns": [], "content": "c1"},
		{"name": "rows", "kind": "table", "columns": ["who"], "content": "c2"},
	] with input as _content with data.policy as _many
}

test_no_limits_where_a_column_does_not_fit if {
	every change in [
		{"op": "replace", "path": "/output/fields/2/column/longest", "value": 4},
		{"op": "remove", "path": "/output/fields/2"},
	] {
		not code_output.limits with input as json.patch(_content, [change]) with data.policy as _many
	}
}
