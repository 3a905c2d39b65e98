package admission.requirements.code_output.verdict_test

import data.admission.limits.code_output
import data.admission.requirements.code_output.fields
import future.keywords.not

_policy := {"code": {"contracts": {"verdict": {
	"fields": [{"name": "passed", "type": "flag", "must_be": true}],
	"echoed": [],
	"answer": "verified",
}}}}

_field := {"id": "passed", "present": true, "kind": "boolean", "flag": true}

_of(field) := {
	"contract": "verdict",
	"run": {"status": "ok", "stdout_bytes": 9, "stderr_bytes": 0, "exits": [{"id": "0", "code": 0}]},
	"output": {"bytes": 9, "blank": false, "parsed": true, "object": true, "fields": [field]},
	"echoed": [],
}

test_a_verdict_that_passes if {
	fields.as_agreed(_field) with input as _of(_field) with data.policy as _policy
	limits := code_output.limits with input as _of(_field) with data.policy as _policy
	limits == {
		"contract": "verdict",
		"result": [{"name": "passed", "kind": "flag", "value": true}],
		"echoed": [],
		"answer": "verified",
		"artifacts": [],
		"printed": [],
	}
}

test_any_other_verdict if {
	wrong := [{"flag": false}, {"flag": "true"}, {"kind": "integer"}, {"present": false}]
	every change in wrong {
		field := object.union(_field, change)
		not fields.as_agreed(field) with input as _of(field) with data.policy as _policy
	}
}

test_no_verdict if {
	field := object.remove(_field, ["flag"])
	not fields.as_agreed(field) with input as _of(field) with data.policy as _policy
}

test_policy_does_not_say_which if {
	contract := {"fields": [{"name": "passed", "type": "flag"}], "echoed": [], "answer": "x"}
	policy := {"code": {"contracts": {"verdict": contract}}}
	not fields.as_agreed(_field) with input as _of(_field) with data.policy as policy
}
