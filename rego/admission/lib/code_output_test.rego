package admission.lib.code_output_test

import data.admission.lib.code_output
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

test_clean if {
	got1 := {field.id |
		some field in _input.output.fields
		not code_output.fits(field) with input as _input with data.policy as _policy
	}
	got1 == set()
	code_output.named with input as _input with data.policy as _policy
	code_output.ended with input as _input
	not code_output.failed with input as _input
	not code_output.stopped with input as _input
}

test_status if {
	statuses := {
		"ok", "runtime_error", "signal", "oom", "forbidden_syscall", "timeout_wall",
		"timeout_cpu", "output_limit", "cancelled", "sandbox_error", "", null,
	}
	stopped := {status | some status in statuses; code_output.stopped with input as {"run": {"status": status}}}
	stopped == {"timeout_wall", "timeout_cpu", "output_limit"}
	ended := {status | some status in statuses; code_output.ended with input as {"run": {"status": status}}}
	ended == {"ok", "runtime_error", "signal", "oom", "forbidden_syscall"}
}

test_failed if {
	code_output.failed with input as _set("/run/exits/0/code", 3)
	code_output.failed with input as _set("/run/exits/0/code", -9)
	not code_output.failed with input as _set("/run/exits/0/code", null)
	not code_output.failed with input as _set("/run/exits", [])
}

_values := [
	["/output/fields/0/number", 0, 1, "rate", set()],
	["/output/fields/0/number", -0.1, 1.1, "rate", {"rate"}],
	["/output/fields/0/number", null, "0.5", "rate", {"rate"}],
	["/output/fields/0/kind", "text", "boolean", "rate", {"rate"}],
	["/output/fields/1/present", false, null, "share", {"share"}],
	["/output/fields/2/number", 0, 9000, "alerts", set()],
	["/output/fields/2/number", -1, null, "alerts", {"alerts"}],
	["/output/fields/2/kind", "number", "text", "alerts", {"alerts"}],
	["/output/fields/3/number", -9000, 900, "latency", set()],
	["/output/fields/3/number", 901, null, "latency", {"latency"}],
	["/output/fields/3/kind", "number", "integer", "latency", set()],
	["/output/fields/3/kind", "boolean", "list", "latency", {"latency"}],
	["/output/fields/4/sha256", crypto.sha256("P1"), crypto.sha256("P2"), "severity", set()],
	["/output/fields/4/sha256", crypto.sha256("P0"), null, "severity", {"severity"}],
	["/output/fields/4/kind", "list", "object", "severity", {"severity"}],
	["/output/fields/5/sha256", crypto.sha256("INC-1"), null, "incident", {"incident"}],
	["/output/fields/5/kind", "integer", "text", "incident", set()],
	["/output/fields/5/kind", "object", "number", "incident", {"incident"}],
	["/output/fields/6/upper_sha256", crypto.sha256("EU"), crypto.sha256("us"), "region", {"region"}],
	["/output/fields/6/sha256", "x", "y", "region", set()],
	["/echoed/1/upper", "EU", null, "region", {"region"}],
	["/echoed/2/text", "inc-2", null, "incident", {"incident"}],
]

test_fits if {
	every row in _values {
		got1 := {field.id |
			some field in _set(row[0], row[1]).output.fields
			not code_output.fits(field) with input as _set(row[0], row[1]) with data.policy as _policy
		}
		got1 == row[4]
		got2 := {field.id |
			some field in _set(row[0], row[2]).output.fields
			not code_output.fits(field) with input as _set(row[0], row[2]) with data.policy as _policy
		}
		got2 == row[4]
	}
}

test_named if {
	every request in [_without("/output/fields/6"), _without("/output/fields/0/id"), _set("/output/fields", []), {}] {
		not code_output.named with input as request with data.policy as _policy
	}
	not code_output.named with input as _input with data.policy as {}
}

test_position if {
	code_output.position("rate") == 0 with input as _input with data.policy as _policy
	code_output.position("region") == 6 with input as _input with data.policy as _policy
	not code_output.position("other") with input as _input with data.policy as _policy
	not code_output.position(null) with input as _input with data.policy as _policy
}

_contract(change) := json.patch(_policy, [object.union(change, {"path": $"/code/contracts/m/fields/{change.path}"})])

test_a_contract_names_at_least_one_field_and_all_of_them if {
	code_output.named with input as _input with data.policy as _policy
	none := {"code": {"contracts": {"m": {"fields": []}}}}
	not code_output.named with input as _set("/output/fields", []) with data.policy as none
	nameless := _contract({"op": "add", "path": "-", "value": {"type": "number"}})
	not code_output.named with input as _input with data.policy as nameless
}

test_a_type_that_is_none_fits_nothing if {
	odd := [{"op": "replace", "path": $"/code/contracts/m/fields/{number}/type", "value": "odd"} |
		some number in numbers.range(0, 6)
	]
	not_fitting := {field.id |
		some field in _input.output.fields
		not code_output.fits(field) with input as _input with data.policy as json.patch(_policy, odd)
	}
	count(not_fitting) == 7
}

_flagged(must_be) := {"code": {"contracts": {"m": {"fields": [{"name": "ok", "type": "flag", "must_be": must_be}]}}}}

test_a_flag_is_a_flag if {
	field := {"id": "ok", "present": true, "kind": "boolean"}
	held := {[flag, must_be] |
		some flag in [true, false, null, "true"]
		some must_be in [true, false, null, "true"]
		code_output.fits(object.union(field, {"flag": flag})) with input as {"contract": "m"}
			with data.policy as _flagged(must_be)
	}
	held == {[true, true], [false, false]}
	odd := json.patch(_flagged(true), [{"op": "replace", "path": "/code/contracts/m/fields/0/type", "value": "odd"}])
	not code_output.fits(object.union(field, {"flag": true})) with input as {"contract": "m"} with data.policy as odd
}

test_bounds_and_what_they_bound_are_numbers if {
	rate := _input.output.fields[0]
	fits := {[least, number, most] |
		some least in [0, "any", null, "0"]
		some number in [0.5, null, "0.5"]
		some most in [1, "any", null, "many"]
		policy := json.patch(_policy, [
			{"op": "replace", "path": "/code/contracts/m/fields/0/minimum", "value": least},
			{"op": "replace", "path": "/code/contracts/m/fields/0/maximum", "value": most},
		])
		code_output.fits(object.union(rate, {"number": number})) with input as _input with data.policy as policy
	}
	fits == {[0, 0.5, 1], [0, 0.5, "any"], ["any", 0.5, 1], ["any", 0.5, "any"]}
}

test_what_is_carried_has_the_letter_case_of_its_row if {
	upper_only := json.patch(_input, [
		{"op": "replace", "path": "/output/fields/6/sha256", "value": crypto.sha256("US")},
		{"op": "replace", "path": "/output/fields/6/upper_sha256", "value": "x"},
	])
	not code_output.fits(upper_only.output.fields[6]) with input as upper_only with data.policy as _policy
	as_is_only := json.patch(_input, [
		{"op": "replace", "path": "/output/fields/5/sha256", "value": "x"},
		{"op": "replace", "path": "/output/fields/5/upper_sha256", "value": crypto.sha256("inc-1")},
	])
	not code_output.fits(as_is_only.output.fields[5]) with input as as_is_only with data.policy as _policy
}

test_only_text_is_carried if {
	code_output.echoed("incident") == "inc-1" with input as _input with data.policy as _policy
	code_output.echoed("region") == "US" with input as _input with data.policy as _policy
	every value in [null, 7] {
		not code_output.echoed("incident") with input as _set("/echoed/2/text", value) with data.policy as _policy
		not code_output.echoed("region") with input as _set("/echoed/1/upper", value) with data.policy as _policy
	}
}

test_no_name_has_no_position if {
	nameless := _contract({"op": "replace", "path": "0/name", "value": null})
	not code_output.position(null) with input as _input with data.policy as nameless
}

test_a_file_that_is_kept_has_a_name if {
	policy := {"secrets": {"forms": [{"id": "a"}]}}
	code_output.keepable({"id": "a", "secret": false}) with data.policy as policy
	every file in [{"secret": false}, {"id": null, "secret": false}, {"id": 1, "secret": false}] {
		not code_output.keepable(file) with data.policy as policy
	}
}

test_values_missing if {
	every path in ["fields/0/minimum", "fields/0/maximum", "fields/0/type", "fields/0/name"] {
		policy := json.remove(_policy, [concat("/", ["code", "contracts", "m", path])])
		got1 := {field.id |
			some field in _input.output.fields
			not code_output.fits(field) with input as _input with data.policy as policy
		}
		got1 == {"rate"}
	}
	echoed := json.remove(_policy, ["code/contracts/m/echoed/1/case"])
	got2 := {field.id |
		some field in _input.output.fields
		not code_output.fits(field) with input as _input with data.policy as echoed
	}
	got2 == {"region"}
	got3 := {field.id |
		some field in _input.output.fields
		not code_output.fits(field) with input as _input with data.policy as {}
	}
	count(got3) == 7
}

_free := {"code": {"stdout_bytes": 9, "stderr_bytes": 8, "contracts": {
	"text": {"text": {"stdout_bytes": 7, "stderr_bytes": 6}, "fields": []},
	"none": {"fields": []},
}}}

test_text if {
	code_output.is_text with input as {"contract": "text"} with data.policy as _free
	code_output.streams == {"stdout_bytes": 7, "stderr_bytes": 6} with input as {"contract": "text"}
		with data.policy as _free
	not code_output.is_text with input as _input with data.policy as _policy
	code_output.streams.stdout_bytes == 40 with input as _input with data.policy as _policy
	every name in ["none", "other", null] {
		not code_output.is_text with input as {"contract": name} with data.policy as _free
		not code_output.streams with input as {"contract": name} with data.policy as _free
	}
}

test_streams_of_another_type if {
	every wrong in [null, true, "", [], 7] {
		policy := {"code": {"stdout_bytes": 9, "contracts": {"t": {"text": wrong, "fields": {"x": {"name": "n"}}}}}}
		not code_output.streams with input as {"contract": "t"} with data.policy as policy
	}
}

_many := {"code": {"stdout_bytes": 4, "stderr_bytes": 4, "contracts": {"t": {
	"streams": {"stdout_bytes": 90, "stderr_bytes": 9},
	"fields": [
		{"name": "note", "type": "text", "characters": 3},
		{"name": "sizes", "type": "list", "least": 1, "most": 2, "items": {"type": "number", "minimum": 0, "maximum": 9}},
		{"name": "rows", "type": "table", "least": 0, "most": 2, "columns": [
			{"name": "who", "type": "text", "characters": 3},
			{"name": "count", "type": "integer", "minimum": 0, "maximum": "any"},
			{"name": "color", "type": "choice", "one_of": ["red", "blue"]},
			{"name": "done", "type": "boolean", "optional": true},
		]},
	],
	"echoed": [],
}}}}

_column(facts) := object.union(
	{
		"missing": 0, "values": 2, "booleans": 0, "integers": 0, "numbers": 0, "strings": 0, "longest": 0, "texts": [],
	},
	facts,
)

_filled := {"contract": "t", "output": {"fields": [
	{"id": "note", "present": true, "kind": "text", "characters": 3, "content": "c"},
	{"id": "sizes", "present": true, "kind": "list", "entries": 2, "rows": 0, "content": "c"},
	{"id": "sizes.items", "present": true, "column": _column({"numbers": 2, "least": 0, "most": 9})},
	{"id": "rows", "present": true, "kind": "list", "entries": 2, "rows": 2, "content": "c"},
	{"id": "rows.who", "present": true, "column": _column({"strings": 2, "longest": 3})},
	{"id": "rows.count", "present": true, "column": _column({
		"integers": 2, "numbers": 2, "least": 0, "most": 99,
	})},
	{"id": "rows.color", "present": true, "column": _column({
		"strings": 2, "longest": 4, "texts": [crypto.sha256("red")],
	})},
	{"id": "rows.done", "present": true, "column": _column({"booleans": 1, "values": 1, "missing": 1})},
]}}

test_content_that_fits if {
	code_output.named with input as _filled with data.policy as _many
	got1 := {field.id |
		some field in _filled.output.fields
		not code_output.fits(field) with input as _filled with data.policy as _many
	}
	got1 == set()
	code_output.streams == {"stdout_bytes": 90, "stderr_bytes": 9} with input as _filled with data.policy as _many
	code_output.position("rows.color") == 6 with input as _filled with data.policy as _many
	not code_output.is_text with input as _filled with data.policy as _many
}

_misfits := [
	["0/characters", [4, null, "3"], "note"],
	["0/kind", ["list", "integer", null], "note"],
	["0/content", [null, 7], "note"],
	["1/entries", [0, 3, null, "2"], "sizes"],
	["1/kind", ["text", "object", null], "sizes"],
	["1/content", [null, 7], "sizes"],
	["2/column/numbers", [1, 3, null], "sizes.items"],
	["2/column/least", [-1, null, "0"], "sizes.items"],
	["2/column/most", [10, null, "9"], "sizes.items"],
	["2/column/missing", [1, null, "0"], "sizes.items"],
	["2/column/values", [3, null, "2"], "sizes.items"],
	["3/rows", [1, null], "rows"],
	["4/column/strings", [1, null], "rows.who"],
	["4/column/longest", [4, null, "3"], "rows.who"],
	["5/column/integers", [1, null], "rows.count"],
	["5/column/least", [-1, null], "rows.count"],
	["6/column/texts", [[crypto.sha256("green")], [crypto.sha256("red"), "x"], null], "rows.color"],
	["6/column/strings", [1, null], "rows.color"],
	["7/column/booleans", [0, 2, null], "rows.done"],
	["7/column/missing", [null, "1"], "rows.done"],
	["4/column", [null, [], {}], "rows.who"],
	["5/present", [false, null], "rows.count"],
]

test_content_that_does_not_fit if {
	every row in _misfits {
		every value in row[1] {
			changed := json.patch(_filled, [{"op": "replace", "path": $"/output/fields/{row[0]}", "value": value}])
			got2 := {field.id |
				some field in changed.output.fields
				not code_output.fits(field) with input as changed with data.policy as _many
			}
			got2 == {row[2]}
		}
		gone := json.patch(_filled, [{"op": "remove", "path": $"/output/fields/{row[0]}"}])
		got3 := {field.id |
			some field in gone.output.fields
			not code_output.fits(field) with input as gone with data.policy as _many
		}
		got3 == {row[2]}
	}
}

test_a_column_without_values_has_no_bounds if {
	empty := _column({"values": 0})
	none := json.patch(_filled, [
		{"op": "replace", "path": "/output/fields/2/column", "value": empty},
		{"op": "replace", "path": "/output/fields/5/column", "value": empty},
		{"op": "replace", "path": "/output/fields/6/column", "value": empty},
	])
	got4 := {field.id |
		some field in none.output.fields
		not code_output.fits(field) with input as none with data.policy as _many
	}
	got4 == set()
}

test_values_of_content_missing if {
	fields := "code/contracts/t/fields"
	every row in [
		["0/characters", {"note"}], ["1/least", {"sizes"}], ["1/most", {"sizes"}], ["2/columns/0/characters", {"rows.who"}],
		["1/items/minimum", {"sizes.items"}], ["1/items/type", {"sizes.items"}], ["2/columns/1/maximum", {"rows.count"}],
		["2/columns/2/one_of", {"rows.color"}], ["2/columns/3/optional", {"rows.done"}],
		["2/columns/3/type", {"rows.done"}],
	] {
		policy := json.remove(_many, [$"{fields}/{row[0]}"])
		got5 := {field.id |
			some field in _filled.output.fields
			not code_output.fits(field) with input as _filled with data.policy as policy
		}
		got5 == row[1]
	}
	policy := json.remove(_many, [$"{fields}/2/columns/3/name"])
	not code_output.named with input as _filled with data.policy as policy
}
