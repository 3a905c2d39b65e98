package admission.requirements.code_output.fields_test

import data.admission.requirements.code_output.fields
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

_two := json.patch(_input, [
	{"op": "replace", "path": "/output/fields/1/number", "value": 2},
	{"op": "replace", "path": "/output/fields/4/kind", "value": "list"},
])

test_clean if {
	got1 := {field.id |
		some field in _input.output.fields
		not fields.as_agreed(field) with input as _input with data.policy as _policy
	}
	got1 == set()
	fields.echoed with input as _input with data.policy as _policy
}

test_the_first_is_told if {
	got1 := {field.id |
		some field in _two.output.fields
		not fields.as_agreed(field) with input as _two with data.policy as _policy
	}
	got1 == {"share"}
	got2 := {field.id |
		some field in _set("/output/fields/4/kind", "list").output.fields
		not fields.as_agreed(field) with input as _set("/output/fields/4/kind", "list") with data.policy as _policy
	}
	got2 == {"severity"}
}

test_a_field_without_its_name_is_told if {
	got1 := {field.id |
		some field in _set("/output/fields/0/id", "other").output.fields
		not fields.as_agreed(field) with input as _set("/output/fields/0/id", "other") with data.policy as _policy
	}
	got1 == {"other"}
}

test_one_name_twice_is_told if {
	twice := json.patch(_two, [{"op": "add", "path": "/output/fields/-", "value": _two.output.fields[1]}])
	got1 := {field.id |
		some field in twice.output.fields
		not fields.as_agreed(field) with input as twice with data.policy as _policy
	}
	got1 == {"share"}
}

test_carried if {
	every path in ["/echoed/0/text", "/echoed/0"] {
		not fields.echoed with input as _without(path) with data.policy as _policy
	}
	fields.echoed with input as _two with data.policy as _policy
	failed := json.patch(_without("/echoed/0"), [{"op": "replace", "path": "/run/exits/0/code", "value": 3}])
	fields.echoed with input as failed with data.policy as _policy
	not fields.echoed with input as {} with data.policy as _policy
}

test_a_request_without_what_the_output_repeats_is_told_before_that_field if {
	every path in ["/echoed/2/text", "/echoed/2", "/echoed/1/upper"] {
		not fields.echoed with input as _without(path) with data.policy as _policy
	}
	bad := json.patch(_without("/echoed/2"), [{"op": "replace", "path": "/output/fields/0/number", "value": 2}])
	fields.echoed with input as bad with data.policy as _policy
	other := json.patch(_without("/echoed/0"), [{"op": "replace", "path": "/output/fields/5/sha256", "value": "x"}])
	fields.echoed with input as other with data.policy as _policy
}

test_a_failed_program_is_not_told_twice if {
	failed := json.patch(_two, [{"op": "replace", "path": "/run/exits/0/code", "value": 3}])
	got1 := {field.id |
		some field in failed.output.fields
		not fields.as_agreed(field) with input as failed with data.policy as _policy
	}
	got1 == set()
}

test_a_field_without_a_name_is_told_of_a_failed_program_too if {
	failed := _set("/run/exits/0/code", 3)
	fields.as_agreed({"id": "rate"}) with input as failed with data.policy as _policy
	every field in [{}, {"id": null}] {
		not fields.as_agreed(field) with input as failed with data.policy as _policy
	}
}

test_what_is_carried_is_not_told_besides_a_field if {
	without := json.patch(_two, [{"op": "remove", "path": "/echoed/0"}])
	fields.echoed with input as without with data.policy as _policy
}

test_carried_rows_are_a_list if {
	rows := {row.name: row | some row in _policy.code.contracts.m.echoed}
	named := json.patch(_policy, [{"op": "replace", "path": "/code/contracts/m/echoed", "value": rows}])
	not fields.echoed with input as _input with data.policy as named
}

test_values_missing if {
	got1 := {field.id |
		some field in _input.output.fields
		not fields.as_agreed(field) with input as _input with data.policy as {}
	}
	count(got1) == 7
	without := json.remove(_input, ["output/fields"])
	every path in ["echoed", "echoed/0/name", "echoed/0/case"] {
		policy := json.remove(_policy, [concat("/", ["code", "contracts", "m", path])])
		not fields.echoed with input as without with data.policy as policy
	}
}
