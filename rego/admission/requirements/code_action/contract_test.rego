package admission.requirements.code_action.contract_test

import data.admission.requirements.code_action.contract
import future.keywords.not

_policy := {"code": {"contracts": {
	"brief": {"echoed": [{"name": "region", "case": "upper"}, {"name": "incident_id", "case": "as_is"}]},
	"verdict": {"echoed": []},
}}}

_input := {
	"contract": {"stated": true, "value": "brief"},
	"echoed": [{"id": "region", "text": "us", "upper": "US"}, {"id": "incident_id", "text": "inc_1", "upper": "INC_1"}],
}

_true(rules) := {name | some name, held in rules; held == true}

_all := {"contract_known", "repeated_stated"}

_holding(facts) := held if {
	got := contract with input as facts with data.policy as _policy
	held := _true(got)
}

test_clean if {
	_holding(_input) == _all
	_holding({"contract": {"stated": true, "value": "verdict"}, "echoed": []}) == _all
	_holding({"contract": {"stated": false}, "echoed": []}) == _all
}

test_contract_unknown if {
	_holding(object.union(_input, {"contract": {"value": "other"}})) == set()
}

test_not_repeated if {
	every patch in [
		{"op": "remove", "path": "/echoed/0"},
		{"op": "remove", "path": "/echoed/1/text"},
		{"op": "replace", "path": "/echoed/1/text", "value": 7},
		{"op": "replace", "path": "/echoed/1/id", "value": "region"},
	] {
		_holding(json.patch(_input, [patch])) == {"contract_known"}
	}
}

test_fact_missing if {
	_holding({}) == set()
	_holding({"contract": {"stated": false}}) == {"contract_known"}
	_holding(json.patch(_input, [{"op": "remove", "path": "/echoed"}])) == {"contract_known"}
	_holding(json.patch(_input, [{"op": "remove", "path": "/contract/value"}])) == set()
}

test_values_missing if {
	got1 := contract with input as _input with data.policy as {}
	_true(got1) == set()
	got2 := contract with input as _input with data.policy as {"code": {"contracts": {"brief": {}}}}
	_true(got2) == {"contract_known"}
}
