package admission.limits.code_execution_test

import data.admission.lib.code_execution_test
import data.admission.lib.sandbox_test
import data.admission.limits.code_execution
import future.keywords.not

_policy := code_execution_test.policy

_run := code_execution_test.run

_without(path) := json.remove(_policy, [path])

_limits := object.union(sandbox_test.of_each(10), {
	"profile": "here",
	"backend": "jail",
	"isolation": "container",
	"required": sandbox_test.kernel,
	"network": "none",
	"redact": true,
	"wall_seconds": 2,
	"stdout_bytes": 8,
	"stderr_bytes": 7,
	"artifact_files": 0,
	"artifact_bytes": 0,
	"action_id": "c1",
	"language": "python",
	"entrypoint": "main.py",
	"code_sha256": _run.action.code.sha256,
	"role": "solution",
	"seed": 7,
	"environment": {"CALM": "1", "PYTHONHASHSEED": "7"},
	"retention_days": 30,
	"files": [],
	"live": false,
	"scan": "binding",
	"packages": [],
})

_science := {"packages": {"stated": true, "value": "science", "tree": "sha256:t"}}

_wanted := {
	"nothing": [{}, {}],
	"files come out": [{"artifacts": true}, {"artifact_files": 10, "artifact_bytes": 10}],
	"text": [
		{"contract": {"stated": true, "value": "free"}},
		{"stdout_bytes": 6, "stderr_bytes": 5, "live": true},
	],
	"fields": [{"contract": {"stated": true, "value": "facts"}}, {}],
	"files go in": [{"files": [{"id": "a", "bytes": 1, "sha256": "x"}]}, {"files": [{"name": "a", "sha256": "x"}]}],
	"packages": [_science, object.union(sandbox_test.of_each(9), {
		"profile": "loose", "wall_seconds": 2, "stdout_bytes": 8, "stderr_bytes": 7, "artifact_files": 0,
		"artifact_bytes": 0, "scan": "advisory", "packages": [{"name": "science", "tree": "sha256:t"}],
	})],
	"little time left": [{"elapsed_ms": 24000}, {"wall_seconds": 1}],
	"longer hint": [{"hints": {"exec_timeout_seconds": {"readable": true, "value": 99}}}, {"wall_seconds": 10}],
	"tightened": [
		{"tighten": [{"id": "wall_seconds", "value": 1.5}, {"id": "stdout_bytes", "value": 3}]},
		{"wall_seconds": 1.5, "stdout_bytes": 3},
	],
	"verifier": [{"role": "verifier"}, object.union(sandbox_test.of_each(5), {
		"role": "verifier", "wall_seconds": 2, "artifact_files": 0, "artifact_bytes": 0,
	})],
	"other profile": [{"profile": {"stated": true, "value": "there"}}, object.union(sandbox_test.of_each(9), {
		"profile": "there", "wall_seconds": 2, "stdout_bytes": 8, "stderr_bytes": 7, "artifact_files": 0,
		"artifact_bytes": 0,
	})],
}

test_complete if {
	every _, change in _wanted {
		found := code_execution.limits with input as object.union(_run, change[0]) with data.policy as _policy
		found == object.union(_limits, change[1])
	}
}

test_incomplete if {
	every change in [
		{"role": "judge"}, {"role": null}, {"artifacts": null}, {"seed": null}, {"seed": "7"}, {"elapsed_ms": null},
		{"profile": {"stated": null}}, {"action": {"language": {"value": "javascript"}}},
		{"hints": {"exec_timeout_seconds": {"readable": null}}}, {"contract": {"stated": true, "value": "none"}},
		{"contract": {"stated": null}}, {"packages": {"stated": null}}, {"packages": {"stated": true, "value": "science"}},
		{"files": null}, {"files": [{"id": "a", "bytes": 1}]},
	] {
		not code_execution.limits with input as object.union(_run, change) with data.policy as _policy
	}
	every path in [
		"action/id/value", "action/code/sha256", "action/entrypoint/value", "seed", "role", "artifacts", "elapsed_ms",
	] {
		not code_execution.limits with input as json.remove(_run, [path]) with data.policy as _policy
	}
}

test_values_missing if {
	every path in [
		"code/execution/python", "code/max_seconds", "code/stdout_bytes", "code/stderr_bytes", "code/environment",
		"code/retention_days", "code/hints/exec_timeout_seconds", "sandbox/backends/jail", "sandbox/redaction",
		"sandbox/floor/limits/disk_bytes", "sandbox/profiles/here/limits/disk_bytes", "sandbox/profiles/here/boundaries",
	] {
		not code_execution.limits with input as _run with data.policy as _without(path)
	}
}
