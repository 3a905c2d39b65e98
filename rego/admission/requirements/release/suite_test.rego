package admission.requirements.release.suite_test

import data.admission.requirements.release.suite
import future.keywords.not

_policy := {"release": {"suites": ["tests", "types"], "further_suites": ["security"]}}

_one := {"id": "tests", "tests": 2, "failed": 0, "skipped": 1, "made_at": 10}

_with(change) := object.union(_one, change)

_suites := {
	"tests": _one,
	"security": _with({"id": "security"}),
	"other": _with({"id": "mypy"}),
	"no name": json.remove(_one, ["id"]),
	"failed": _with({"failed": 1}),
	"all skipped": _with({"skipped": 2}),
	"empty": _with({"tests": 0, "skipped": 0}),
	"not counted": json.remove(_one, ["failed"]),
	"old": _with({"made_at": 9}),
	"from the future": _with({"made_at": 21}),
	"no time": json.remove(_one, ["made_at"]),
}

_input := {"now": 20, "change": {"committed_at": 10}}

_all := object.keys(_suites)

test_complete if {
	suite.complete with input as {"suites": [{"id": "tests"}, {"id": "types"}]} with data.policy as _policy
	every suites in [[], [{"id": "tests"}], [{}]] {
		not suite.complete with input as {"suites": suites} with data.policy as _policy
	}
	not suite.complete with input as {} with data.policy as _policy
	not suite.complete with input as {"suites": []} with data.policy as {}
	not suite.complete with input as {"suites": []} with data.policy as {"release": {"suites": []}}
}

test_known if {
	held := {name | some name, one in _suites; suite.known(one) with data.policy as _policy}
	_all - held == {"other", "no name"}
	every one in _suites {
		not suite.known(one) with data.policy as {}
	}
}

test_passed if {
	held := {name | some name, one in _suites; suite.passed(one)}
	_all - held == {"failed", "all skipped", "empty", "not counted"}
}

test_current if {
	held := {name | some name, one in _suites; suite.current(one) with input as _input}
	_all - held == {"old", "from the future", "no time"}
	suite.current(_with({"made_at": 20})) with input as _input
	not suite.current(_one) with input as {"now": 20, "change": {}}
	not suite.current(_one) with input as {"change": {"committed_at": 10}}
}

test_of_another_type if {
	every wrong in [null, true, "", [], {}] {
		every name in ["tests", "failed", "skipped"] { not suite.passed(_with({name: wrong})) }
		not suite.current(_with({"made_at": wrong})) with input as _input
		not suite.current(_one) with input as {"now": 20, "change": {"committed_at": wrong}}
		not suite.current(_one) with input as {"now": wrong, "change": {"committed_at": 10}}
	}
}
