package admission.lib.sandbox_test

import data.admission.lib.boundary
import data.admission.lib.sandbox
import future.keywords.not

# What a test of any point whose work runs in a sandbox starts from.
policy := {"sandbox": {
	"probe_max_age_seconds": 100,
	"probe_clock_skew_seconds": 60,
	"redaction": true,
	"backends": {"jail": {"isolation": "container", "egress": true}},
	"floor": {"boundaries": kernel, "limits": of_each(20)},
	"profiles": {
		"here": {
			"backend": "jail", "boundaries": kernel, "limits": of_each(10), "verifier": of_each(5),
			"alternatives": ["there", "loose"], "scan": "binding",
		},
		"there": {
			"backend": "jail", "boundaries": kernel, "limits": of_each(9), "verifier": of_each(4),
			"alternatives": [], "scan": "binding",
		},
		"loose": {
			"backend": "jail", "boundaries": kernel, "limits": of_each(9), "verifier": of_each(4),
			"alternatives": [], "scan": "advisory",
		},
		"other": {"backend": "jail", "boundaries": kernel, "limits": of_each(9), "verifier": of_each(4), "alternatives": []},
		"low": {"backend": "jail", "boundaries": kernel, "limits": of_each(21), "verifier": of_each(4), "alternatives": []},
	},
	"packages": {"science": {"tree": "sha256:t", "profile": "loose"}},
	"executables": {"cat": "/usr/bin/cat"},
	"shells": {"here": "/usr/bin/sh"},
}}

facts := {
	"now": 1000,
	"probes": [{"id": "jail", "subject": "a", "machine": "a", "probed_at": 950, "authentic": true}],
	"boundaries": [
	{"backend": "jail", "boundary": name, "kind": "kernel", "enforced": true, "evidence": "e"} |
		some name in boundary.names
	],
	"required": {"boundaries": [{"id": name} | some name in boundary.names]},
	"tighten": [],
}

of_each(number) := {name: number | some name in names}

kernel[name] := ["kernel"] if some name in boundary.names

names := [
	"wall_seconds", "cpu_seconds", "memory_bytes", "processes", "open_files", "file_bytes", "disk_bytes",
	"stdout_bytes", "stderr_bytes", "artifact_files", "artifact_bytes",
]

_with(path, value) := json.patch(policy, [{"op": "replace", "path": concat("", ["/sandbox/", path]), "value": value}])

_without(path) := {"sandbox": json.remove(policy.sandbox, [path])}

test_isolation if {
	sandbox.isolation("here") == "container" with data.policy as policy
	not sandbox.isolation("nowhere") with data.policy as policy
	not sandbox.isolation("here") with data.policy as _with("backends/jail/isolation", null)
	every path in ["backends", "backends/jail", "backends/jail/isolation", "profiles/here", "profiles/here/backend"] {
		not sandbox.isolation("here") with data.policy as _without(path)
	}
}

test_egress if {
	sandbox.egress("here") == true with data.policy as policy
	not sandbox.egress("nowhere") with data.policy as policy
	every path in ["backends", "backends/jail", "backends/jail/egress", "profiles/here", "profiles/here/backend"] {
		not sandbox.egress("here") with data.policy as _without(path)
	}
}

test_within_floor if {
	every role in ["solution", "verifier"] {
		sandbox.within_floor("here", role) with data.policy as policy
		not sandbox.within_floor("nowhere", role) with data.policy as policy
		not sandbox.within_floor("here", role) with data.policy as _with("profiles/here/boundaries/files", ["bounded"])
		not sandbox.within_floor("here", role) with data.policy as _with("profiles/here/boundaries/files", [])
		not sandbox.within_floor("here", role) with data.policy as _with("profiles/here/boundaries/files", "kernel")
		not sandbox.within_floor("here", role) with data.policy as _without("profiles/here/boundaries/survivors")
		not sandbox.within_floor("here", role) with data.policy as _without("floor/boundaries/survivors")
	}
	not sandbox.within_floor("here", "judge") with data.policy as policy
	every name in names {
		not sandbox.within_floor("here", "solution")
			with data.policy as _with(concat("/", ["profiles/here/limits", name]), 21)
		not sandbox.within_floor("here", "solution")
			with data.policy as _with(concat("/", ["profiles/here/limits", name]), null)
		not sandbox.within_floor("here", "solution")
			with data.policy as _without(concat("/", ["profiles/here/limits", name]))
		not sandbox.within_floor("here", "solution") with data.policy as _without(concat("/", ["floor/limits", name]))
		sandbox.within_floor("here", "verifier")
			with data.policy as _with(concat("/", ["profiles/here/limits", name]), 21)
	}
}

test_no_higher if {
	amounts := {
		"lower": {"id": "processes", "value": 9}, "same": {"id": "processes", "value": 10},
		"higher": {"id": "processes", "value": 11}, "text": {"id": "processes", "value": "1"},
		"null": {"id": "processes", "value": null}, "no value": {"id": "processes"}, "no id": {"value": 1},
		"unknown": {"id": "patience", "value": 1},
		"none": {"id": "processes", "value": 0},
		"no files": {"id": "artifact_files", "value": 0},
		"fewer than none": {"id": "artifact_files", "value": -1},
	}
	held := {name | some name, one in amounts; sandbox.no_higher("here", "solution", one) with data.policy as policy}
	held == {"lower", "same", "no files"}
	not sandbox.no_higher("here", "verifier", amounts.lower) with data.policy as policy
	not sandbox.no_higher("here", "solution", amounts.lower) with data.policy as _without("floor/limits/processes")
}

_found(role) := {name: value | some name, value in sandbox.bounds("here", role)}

test_bounds if {
	_found("solution") == of_each(10) with input as {"tighten": []} with data.policy as policy
	_found("verifier") == of_each(5) with input as {"tighten": []} with data.policy as policy
	tightened := object.union(of_each(10), {"wall_seconds": 2.5, "artifact_files": 0})
	_found("solution") == tightened with input as {"tighten": [
		{"id": "wall_seconds", "value": 2.5},
		{"id": "artifact_files", "value": 0},
		{"id": "processes", "value": 99},
		{"value": 1},
	]}
		with data.policy as policy
	every name in names {
		not sandbox.bounds("here", "solution") with input as {"tighten": []}
			with data.policy as _without(concat("/", ["profiles/here/limits", name]))
	}
}

test_most_is_a_number_up_to_that_of_the_floor if {
	sandbox.most("here", "solution", "processes") == 10 with data.policy as policy
	sandbox.most("here", "solution", "processes") == 20 with data.policy as _with("profiles/here/limits/processes", 20)
	every value in [21, null, false, "10"] {
		not sandbox.most("here", "solution", "processes")
			with data.policy as _with("profiles/here/limits/processes", value)
	}
	every value in [9, null, "many"] {
		not sandbox.most("here", "solution", "processes") with data.policy as _with("floor/limits/processes", value)
	}
}

test_every_kind_of_a_boundary_is_in_the_floor if {
	every kinds in [["kernel", "bounded"], ["bounded", "kernel"], {"0": "kernel"}] {
		not sandbox.within_floor("here", "solution") with data.policy as _with("profiles/here/boundaries/files", kinds)
	}
}

test_place if {
	place := {
		"profile": "here", "backend": "jail", "isolation": "container", "required": kernel, "network": "none",
		"redact": true,
	}
	sandbox.place("here") == place with data.policy as policy
	every path in ["backends/jail", "redaction", "profiles/here/backend", "profiles/here/boundaries"] {
		not sandbox.place("here") with data.policy as _without(path)
	}
}
