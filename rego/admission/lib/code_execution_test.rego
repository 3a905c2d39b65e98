package admission.lib.code_execution_test

import data.admission.lib.code_execution
import data.admission.lib.sandbox_test
import future.keywords.not

# What a test of point code_execution starts from.
policy := {
	"code": {
		"languages": ["javascript", "python"],
		"execution": {"python": "here"},
		"entrypoints": ["main.py"],
		"max_seconds": 25,
		"stdout_bytes": 8,
		"stderr_bytes": 7,
		"attempts": 3,
		"retention_days": 30,
		"environment": {"CALM": "1"},
		"inputs": {"files": 2, "bytes": 4},
		"contracts": {
			"facts": {"fields": [{"name": "n"}]},
			"free": {"fields": [], "text": {"stdout_bytes": 6, "stderr_bytes": 5}},
		},
		"hints": {
			"network_access": ["denied"],
			"max_code_chars": {"default": 100, "minimum": 10, "maximum": 200},
			"exec_timeout_seconds": {"default": 2, "minimum": 1, "maximum": 20},
		},
		"scan": {"python": {
			"modules": {}, "builtins": [], "denied_calls": [], "denied_names": [], "denied_attributes": [], "literals": [],
			"computed": [], "encodings": [], "input_reads": 1,
		}},
	},
	"sandbox": sandbox_test.policy.sandbox,
}

_name(value) := {"text": true, "blank": false, "value": value}

_scan := {
	"language": "python", "parsed": true, "complete": true, "imports": [], "members": [], "modules": [], "calls": [],
	"attributes": [], "names": [], "literals": [], "computed": [], "encodings": [], "input_calls": 0, "input_values": 0,
	"network_literals": 0,
}

run := object.union(sandbox_test.facts, {
	"action": {
		"object": true,
		"id": _name("c1"),
		"language": _name("python"),
		"entrypoint": object.union(_name("main.py"), {"separators": false}),
		"code": {
			"text": true, "blank": false, "null_characters": false, "chars": 9, "sha256": crypto.sha256("a"),
			"hash": "a",
		},
		"input_payload": {"object": true, "sha256": "b"},
		"unknown_fields": 0,
	},
	"hints": {
		"network_access": {"stated": false},
		"allowed_languages": {"readable": false},
		"max_code_chars": {"readable": false},
		"exec_timeout_seconds": {"readable": false},
	},
	"scan": _scan,
	"elapsed_ms": 500,
	"role": "solution",
	"profile": {"stated": false},
	"packages": {"stated": false},
	"contract": {"stated": false},
	"files": [],
	"seed": 7,
	"artifacts": false,
	"task": {"stated": false},
	"attempts": [],
})

test_profile if {
	code_execution.profile == "here" with input as run with data.policy as policy
	stated := object.union(run, {"profile": {"stated": true, "value": "strict"}})
	code_execution.profile == "strict" with input as stated with data.policy as policy
	code_execution.default_profile == "here" with input as stated with data.policy as policy
	every change in [
		{"profile": {"stated": true, "value": null}},
		{"profile": {"stated": null}},
		{"profile": {"stated": null, "value": "strict"}},
		{"action": {"language": {"value": "cobol"}}},
		{"action": {"language": {"value": "lua"}}},
		{"action": {"language": {"value": null}}},
	] {
		not code_execution.profile with input as object.union(run, change) with data.policy as policy
	}
	unused := object.union(run, {"profile": {"stated": false, "value": "strict"}})
	code_execution.profile == "here" with input as unused with data.policy as policy
	not code_execution.default_profile with input as run with data.policy as {"code": {"execution": {"python": 7}}}
	not code_execution.profile with input as run with data.policy as {}
}

test_remaining_seconds if {
	code_execution.remaining_seconds == 24.5 with input as run with data.policy as policy
	not code_execution.remaining_seconds with input as {} with data.policy as policy
	not code_execution.remaining_seconds with input as run with data.policy as {}
}

test_contract_holds if {
	code_execution.contract_holds with input as run with data.policy as policy
	elsewhere := object.union(run, {"action": {"entrypoint": {"value": "other.py", "separators": true}}})
	code_execution.contract_holds with input as elsewhere with data.policy as policy
	every change in [
		{"object": false}, {"id": {"blank": true}}, {"language": {"text": false}}, {"entrypoint": {"blank": true}},
		{"code": {"blank": true}}, {"code": {"chars": 101}}, {"input_payload": {"object": false}}, {"unknown_fields": 1},
	] {
		not code_execution.contract_holds with input as object.union(run, {"action": change}) with data.policy as policy
	}
	not code_execution.contract_holds with input as {} with data.policy as policy
}

test_entrypoint_admitted if {
	code_execution.entrypoint_admitted with input as run with data.policy as policy
	every change in [{"value": "other.py"}, {"separators": true}, {"value": null}] {
		not code_execution.entrypoint_admitted with input as object.union(run, {"action": {"entrypoint": change}})
			with data.policy as policy
	}
	not code_execution.entrypoint_admitted with input as run with data.policy as {}
}

_science := object.union(run, {"packages": {"stated": true, "value": "science", "tree": "sha256:t"}})

test_profile_of_packages if {
	code_execution.profile == "loose" with input as _science with data.policy as policy
	code_execution.default_profile == "loose" with input as _science with data.policy as policy
	every change in [{"value": "magic"}, {"value": null}, {"stated": null}] {
		unknown := object.union(_science, {"packages": change})
		not code_execution.profile with input as unknown with data.policy as policy
	}
	not code_execution.profile with input as _science with data.policy as {"code": policy.code}
}

test_streams if {
	code_execution.streams.stdout_bytes == 8 with input as run with data.policy as policy
	facts := object.union(run, {"contract": {"stated": true, "value": "facts"}})
	code_execution.streams.stdout_bytes == 8 with input as facts with data.policy as policy
	not code_execution.live with input as facts with data.policy as policy
	free := object.union(run, {"contract": {"stated": true, "value": "free"}})
	code_execution.streams == {"stdout_bytes": 6, "stderr_bytes": 5} with input as free with data.policy as policy
	code_execution.live with input as free with data.policy as policy
	not code_execution.live with input as run with data.policy as policy
	own := json.patch(policy, [{
		"op": "add", "path": "/code/contracts/facts/streams",
		"value": {"stdout_bytes": 99, "stderr_bytes": 9},
	}])
	code_execution.streams == {"stdout_bytes": 99, "stderr_bytes": 9} with input as facts with data.policy as own
	not code_execution.live with input as facts with data.policy as own
	unstated := object.union(facts, {"contract": {"stated": false}})
	code_execution.streams.stdout_bytes == 8 with input as unstated with data.policy as own
	every value in ["none", null] {
		unknown := object.union(run, {"contract": {"stated": true, "value": value}})
		not code_execution.streams with input as unknown with data.policy as policy
		not code_execution.live with input as unknown with data.policy as policy
	}
	not code_execution.live with input as object.union(free, {"contract": {"stated": null}}) with data.policy as policy
	not code_execution.streams with input as object.union(free, {"contract": {"stated": null}})
		with data.policy as policy
}

test_contained if {
	code_execution.contained with input as run with data.policy as policy
	not code_execution.contained with input as object.union(run, {"probes": []}) with data.policy as policy
	fewer := object.union(run, {"boundaries": array.slice(run.boundaries, 1, 99)})
	not code_execution.contained with input as fewer with data.policy as policy
	not code_execution.contained with input as run with data.policy as {}
}

test_of_another_type if {
	free := object.union(run, {"contract": {"stated": true, "value": "free"}})
	every wrong in [null, true, "", [], 7] {
		odd := object.union(policy, {"code": {"contracts": {"free": {"text": wrong}}}})
		not code_execution.streams with input as free with data.policy as odd
	}
	profiles := object.union(policy, {"sandbox": {"packages": {"science": {"profile": 7}}}})
	not code_execution.default_profile with input as _science with data.policy as profiles
	facts := object.union(run, {"contract": {"stated": true, "value": "facts"}})
	fields := object.union(policy, {"code": {"contracts": {"facts": {"fields": {"x": {"name": "n"}}}}}})
	not code_execution.streams with input as facts with data.policy as fields
	not code_execution.streams with input as object.union(facts, {"contract": {"stated": null}}) with data.policy as policy
}
