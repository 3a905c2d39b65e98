package admission.requirements.artifact.checks_test

import data.admission.requirements.artifact.checks
import future.keywords.not

_check(name, change) := object.union({"id": name, "passed": true, "ran_in": "container", "decision_id": "d"}, change)

_both(change) := [_check("sandbox", change), _check("validation", {})]

_asked(kind, found) := {"sha256": "a", "kind": kind, "checks": found}

test_validated if {
	checks.validated with input as _asked("code", _both({}))
	not checks.validated with input as _asked("code", [])
	not checks.validated with input as _asked("code", [_check("sandbox", {})])
	not checks.validated with input as _asked("code", [_check("validation", {})])
	not checks.validated with input as _asked("code", _both({"passed": false}))
	not checks.validated with input as _asked("code", _both({"decision_id": null}))
	not checks.validated with input as {"kind": "code", "checks": _both({})}
	not checks.validated with input as {"sha256": "a", "kind": "code"}
}

_policy := {"sandbox": {"artifact_isolation": {
	"solution": ["restricted_process", "container"],
	"tool": ["webassembly"],
}}}

test_isolated if {
	held := {[kind, place] |
		some kind in ["solution", "tool", "poem", null]
		some place in ["restricted_process", "container", "webassembly", "subprocess", null]
		checks.isolated with input as _asked(kind, _both({"ran_in": place})) with data.policy as _policy
	}
	held == {["solution", "restricted_process"], ["solution", "container"], ["tool", "webassembly"]}
	not checks.isolated with input as _asked("solution", []) with data.policy as _policy
	not checks.isolated with input as {"kind": "solution"} with data.policy as _policy
}

test_isolation_without_values if {
	every policy in [{}, {"sandbox": {"artifact_isolation": {}}}, {"sandbox": {"artifact_isolation": {"tool": []}}}] {
		not checks.isolated with input as _asked("tool", _both({"ran_in": "webassembly"})) with data.policy as policy
	}
}
