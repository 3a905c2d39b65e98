package admission.requirements.code_output.run_test

import data.admission.requirements.code_output.run
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

_all := {"contract_known", "ended", "in_time", "stdout_fits", "stderr_fits"}

_run(changes) := object.union(_input, {"run": object.union(_input.run, changes)})

test_clean if {
	got1 := run with input as _input with data.policy as _policy
	_true(got1) == _all
	run.ended_well({"id": "0", "code": 0}) with input as _input
}

test_ended_well if {
	not run.ended_well({"id": "3", "code": 3}) with input as _input
	not run.ended_well({"id": "0"}) with input as _input
	not run.ended_well({"id": "0", "code": 0}) with input as _run({"status": "runtime_error"})
	not run.ended_well({"id": "0", "code": 0}) with input as {}
}

test_each_way_not_to_hold if {
	got1 := run with input as _set("/contract", "other") with data.policy as _policy
	_true(got1) == {"ended", "in_time"}
	got2 := run with input as _run({"status": "timeout_wall"}) with data.policy as _policy
	_true(got2) == _all - {"in_time"}
	got3 := run with input as _run({"status": "timeout_cpu", "exits": []}) with data.policy as _policy
	_true(got3) == _all - {"in_time"}
	got4 := run with input as _run({"status": "sandbox_error"}) with data.policy as _policy
	_true(got4) == {"contract_known"}
	got5 := run with input as _run({"exits": []}) with data.policy as _policy
	_true(got5) == _all - {"ended"}
	got6 := run with input as _run({"exits": [{"id": "0", "code": null}]}) with data.policy as _policy
	_true(got6) == _all - {"ended"}
	got7 := run with input as _run({"stdout_bytes": 41}) with data.policy as _policy
	_true(got7) == _all - {"stdout_fits"}
	got8 := run with input as _set("/output/bytes", 41) with data.policy as _policy
	_true(got8) == _all - {"stdout_fits"}
	got9 := run with input as _run({"stderr_bytes": 41}) with data.policy as _policy
	_true(got9) == _all - {"stderr_fits"}
	got10 := run with input as _run({"status": "output_limit", "limit": "stdout"}) with data.policy as _policy
	_true(got10) == _all - {"stdout_fits"}
	got11 := run with input as _run({"status": "output_limit", "limit": "stderr"}) with data.policy as _policy
	_true(got11) == _all - {"stderr_fits"}
	got12 := run with input as _run({"status": "output_limit"}) with data.policy as _policy
	_true(got12) == _all - {"stdout_fits", "stderr_fits"}
}

test_fact_missing if {
	got1 := run with input as _without("/contract") with data.policy as _policy
	_true(got1) == {"ended", "in_time"}
	got2 := run with input as _without("/run/status") with data.policy as _policy
	_true(got2) == {"contract_known"}
	got3 := run with input as _without("/run/exits") with data.policy as _policy
	_true(got3) == _all - {"ended"}
	got4 := run with input as _without("/run/stdout_bytes") with data.policy as _policy
	_true(got4) == _all - {"stdout_fits"}
	got5 := run with input as _without("/output/bytes") with data.policy as _policy
	_true(got5) == _all - {"stdout_fits"}
	got6 := run with input as _without("/run/stderr_bytes") with data.policy as _policy
	_true(got6) == _all - {"stderr_fits"}
	got7 := run with input as {} with data.policy as _policy
	_true(got7) == set()
}

test_one_exit if {
	two := _run({"exits": [{"id": "0", "code": 0}, {"id": "1", "code": 0}]})
	not run.ended with input as two
}

test_sizes_are_numbers if {
	every value in [null, false] {
		not run.stdout_fits with input as _run({"stdout_bytes": value}) with data.policy as _policy
		not run.stdout_fits with input as _set("/output/bytes", value) with data.policy as _policy
		not run.stderr_fits with input as _run({"stderr_bytes": value}) with data.policy as _policy
	}
}

test_only_a_program_that_was_stopped_for_it_has_a_limit if {
	every limit in ["stdout", "stderr"] {
		odd := _run({"status": "sandbox_error", "limit": limit})
		not run.stdout_fits with input as odd with data.policy as _policy
		not run.stderr_fits with input as odd with data.policy as _policy
	}
}

test_values_missing if {
	got1 := run with input as _input with data.policy as {}
	_true(got1) == {"ended", "in_time"}
}

_free := {"code": {
	"stdout_bytes": 9, "stderr_bytes": 8,
	"contracts": {"t": {"text": {"stdout_bytes": 50, "stderr_bytes": 40}, "fields": [], "echoed": [], "answer": "text"}},
}}

_text := object.union(_input, {"contract": "t", "output": {
	"bytes": 50, "sha256": "x", "blank": true, "parsed": false, "object": false, "fields": [],
}})

test_text_has_its_own_limits if {
	longer := object.union(_text, {"run": {"stdout_bytes": 50}})
	run.stdout_fits with input as longer with data.policy as _free
	run.stderr_fits with input as longer with data.policy as _free
	not run.stdout_fits with input as object.union(longer, {"run": {"stdout_bytes": 51}}) with data.policy as _free
	not run.stderr_fits with input as object.union(longer, {"run": {"stderr_bytes": 41}}) with data.policy as _free
	every path in ["code/contracts/t/text/stdout_bytes", "code/contracts/t/text"] {
		not run.stdout_fits with input as longer with data.policy as json.remove(_free, [path])
	}
}

test_limits_are_numbers if {
	every wrong in [null, true, "", [], {}] {
		policy := object.union(_policy, {"code": {"stdout_bytes": wrong, "stderr_bytes": wrong}})
		not run.stdout_fits with input as _input with data.policy as policy
		not run.stderr_fits with input as _input with data.policy as policy
	}
}
