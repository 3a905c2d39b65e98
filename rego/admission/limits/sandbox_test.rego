package admission.limits.sandbox_test

import data.admission.lib.sandbox_test
import data.admission.limits.sandbox
import future.keywords.not

_policy := object.union(sandbox_test.policy, {"networks": {"tunnels": _egress}})

_egress := {"at_once": 2, "most": 20, "sent_bytes": 200, "received_bytes": 2000}

_request := object.union(sandbox_test.facts, {
	"profile": "here",
	"backend": {"stated": false},
	"declared": [],
	"command": {"stated": false, "text": false},
	"egress": false,
	"files": [],
})

_without(path) := json.remove(_policy, [concat("/", ["sandbox", path])])

_place := {
	"profile": "here", "backend": "jail", "isolation": "container", "required": sandbox_test.kernel, "network": "none",
	"redact": true,
}

_limits(change) := object.union_n([sandbox_test.of_each(10), _place, _nothing, change])

_nothing := {"command": {"kind": "none"}, "egress": null, "files": []}

_command := {"stated": true, "text": false, "executable": "cat", "digest": "d"}

_text := {"stated": true, "text": true, "digest": "d"}

test_complete if {
	sandbox.limits == _limits({}) with input as _request with data.policy as _policy
	commanded := _limits({"command": {"kind": "argv", "path": "/usr/bin/cat", "digest": "d"}})
	sandbox.limits == commanded with input as object.union(_request, {"command": _command}) with data.policy as _policy
	texts := _limits({"command": {"kind": "argv", "path": "/usr/bin/sh", "digest": "d"}})
	sandbox.limits == texts with input as object.union(_request, {"command": _text}) with data.policy as _policy
	way_out := object.union(_request, {"egress": true})
	sandbox.limits == _limits({"egress": _egress}) with input as way_out with data.policy as _policy
	given := object.union(_request, {"files": [{"id": "a/b", "bytes": 1, "sha256": "x"}]})
	files := [{"path": "a/b", "sha256": "x"}]
	sandbox.limits == _limits({"files": files}) with input as given with data.policy as _policy
	tightened := object.union(_request, {"tighten": [{"id": "wall_seconds", "value": 2}]})
	sandbox.limits == _limits({"wall_seconds": 2}) with input as tightened with data.policy as _policy
}

test_incomplete if {
	every change in [
		{"profile": "nowhere"}, {"profile": null}, {"profile": "low"}, {"command": {"stated": null}},
		{"command": object.union(_command, {"executable": "sh"})}, {"command": object.union(_command, {"text": null})},
		{"egress": null}, {"files": null}, {"files": [{"id": "a"}]},
	] {
		not sandbox.limits with input as object.union(_request, change) with data.policy as _policy
	}
	not sandbox.limits with input as {} with data.policy as _policy
	not sandbox.limits with input as object.union(_request, {"command": _text})
		with data.policy as _without("shells/here")
	every name, _ in _egress {
		not sandbox.limits with input as object.union(_request, {"egress": true})
			with data.policy as json.remove(_policy, [concat("/", ["networks/tunnels", name])])
	}
	every path in ["backends", "floor/limits/processes", "profiles/here/limits/processes", "redaction"] {
		not sandbox.limits with input as _request with data.policy as _without(path)
	}
}
