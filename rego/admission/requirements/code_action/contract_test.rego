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

test_clean if {
	every facts in [
		_input,
		{"contract": {"stated": true, "value": "verdict"}, "echoed": []},
		{"contract": {"stated": false}, "echoed": []},
	] {
		got := contract with input as facts with data.policy as _policy
		_true(got) == _all
	}
}

test_contract_unknown if {
	unknown := object.union(_input, {"contract": {"value": "other"}})
	got := contract with input as unknown with data.policy as _policy
	_true(got) == set()
}

test_not_repeated if {
	every patch in [
		{"op": "remove", "path": "/echoed/0"},
		{"op": "remove", "path": "/echoed/1/text"},
		{"op": "replace", "path": "/echoed/1/text", "value": 7},
		{"op": "replace", "path": "/echoed/1/id", "value": "other"},
	] {
		facts := json.patch(_input, [patch])
		got := contract with input as facts with data.policy as _policy
		_true(got) == {"contract_known"}
	}
}

test_fact_missing if {
	every path, held in {
		"/contract": set(),
		"/contract/stated": {"repeated_stated"},
		"/contract/value": set(),
		"/echoed": {"contract_known"},
	} {
		facts := json.patch(_input, [{"op": "remove", "path": path}])
		got := contract with input as facts with data.policy as _policy
		_true(got) == held
	}
	got2 := contract with input as {"contract": {"stated": false}} with data.policy as _policy
	_true(got2) == {"contract_known"}
}

test_values_missing if {
	got1 := contract with input as _input with data.policy as {}
	_true(got1) == set()
	got2 := contract with input as _input with data.policy as {"code": {"contracts": {"brief": {}}}}
	_true(got2) == {"contract_known"}
}
