package admission.limits.sandbox_test

import data.admission.lib.sandbox_test
import data.admission.limits.sandbox
import future.keywords.not

_policy := sandbox_test.policy

_request := object.union(sandbox_test.facts, {
	"profile": "here",
	"backend": {"stated": false},
	"declared": [],
	"command": {"stated": false},
})

_without(path) := {"sandbox": json.remove(_policy.sandbox, [path])}

_place := {
	"profile": "here", "backend": "jail", "isolation": "container", "required": sandbox_test.kernel, "network": "none",
	"redact": true,
}

_limits(change) := object.union_n([sandbox_test.of_each(10), _place, {"command": {"kind": "none"}}, change])

_command := {"stated": true, "executable": "cat", "digest": "d"}

test_complete if {
	sandbox.limits == _limits({}) with input as _request with data.policy as _policy
	commanded := _limits({"command": {"kind": "argv", "path": "/usr/bin/cat", "digest": "d"}})
	sandbox.limits == commanded with input as object.union(_request, {"command": _command}) with data.policy as _policy
	tightened := object.union(_request, {"tighten": [{"id": "wall_seconds", "value": 2}]})
	sandbox.limits == _limits({"wall_seconds": 2}) with input as tightened with data.policy as _policy
}

test_incomplete if {
	every change in [
		{"profile": "nowhere"}, {"profile": null}, {"profile": "low"}, {"command": {"stated": null}},
		{"command": object.union(_command, {"executable": "sh"})},
	] {
		not sandbox.limits with input as object.union(_request, change) with data.policy as _policy
	}
	not sandbox.limits with input as {} with data.policy as _policy
	every path in ["backends", "floor/limits/processes", "profiles/here/limits/processes", "redaction"] {
		not sandbox.limits with input as _request with data.policy as _without(path)
	}
}
