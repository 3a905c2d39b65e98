package admission.requirements.code_execution.run_test

import data.admission.lib.code_execution_test
import data.admission.requirements.code_execution.run
import future.keywords.not

_policy := code_execution_test.policy

_run := code_execution_test.run

_without(path) := json.remove(_policy, [path])

test_in_time if {
	held := {elapsed |
		some elapsed in [0, 24999, 25000, 25001, -1, "0", null]
		run.in_time with input as object.union(_run, {"elapsed_ms": elapsed}) with data.policy as _policy
	}
	held == {0, 24999}
	not run.in_time with input as {} with data.policy as _policy
	not run.in_time with input as _run with data.policy as _without("code/max_seconds")
}

_tried(number) := object.union(_run, {
	"task": {"stated": true, "value": "t"},
	"attempts": [{"id": "x"} | some _ in numbers.range(1, number)],
})

test_attempts_left if {
	run.attempts_left with input as _run with data.policy as _policy
	run.attempts_left with input as object.union(_tried(1), {"attempts": []}) with data.policy as _policy
	run.attempts_left with input as _tried(2) with data.policy as _policy
	not run.attempts_left with input as _tried(3) with data.policy as _policy
	every change in [
		{"task": {"value": null}}, {"task": {"stated": null}}, {"task": {"stated": false}}, {"attempts": null},
		{"attempts": {}}, {"attempts": ""},
	] {
		not run.attempts_left with input as object.union(_tried(2), change) with data.policy as _policy
	}
	not run.attempts_left with input as json.remove(_tried(2), ["attempts"]) with data.policy as _policy
	not run.attempts_left with input as _tried(2) with data.policy as _without("code/attempts")
}

test_one_attempt_without_a_task if {
	run.attempts_left with input as _run with data.policy as _policy
	every change in [
		{"attempts": [{"id": "x"}]}, {"attempts": {}}, {"attempts": ""}, {"task": {"stated": null}},
	] {
		not run.attempts_left with input as object.union(_run, change) with data.policy as _policy
	}
	many := json.patch(_policy, [{"op": "replace", "path": "/code/attempts", "value": "many"}])
	not run.attempts_left with input as _tried(2) with data.policy as many
}

test_a_digest_is_text if {
	list := numbers.range(1, 64)
	not run.not_repeated({"code_sha256": list, "state": "failed"}) with input as _run
	request := object.union(_run, {"action": {"code": {"sha256": list}}})
	not run.not_repeated({"code_sha256": crypto.sha256("b"), "state": "failed"}) with input as request
}

test_not_repeated if {
	code := _run.action.code.sha256
	attempts := {
		"other": {"code_sha256": crypto.sha256("b"), "state": "failed"},
		"cut": {"code_sha256": "b", "state": "failed"}, "same": {"code_sha256": code, "state": "failed"},
		"begun": {"code_sha256": code, "state": "begun"}, "ok": {"code_sha256": code, "state": "ok"},
		"no state": {"code_sha256": code}, "no code": {"state": "ok"}, "null": {"code_sha256": null, "state": "failed"},
	}
	held := {name | some name, one in attempts; run.not_repeated(one) with input as _run}
	held == {"other", "ok"}
	not run.not_repeated(attempts.other) with input as {}
	not run.not_repeated(attempts.other) with input as object.union(_run, {"action": {"code": {"sha256": ""}}})
}
