package admission.requirements.adapter_envelope.contract_test

import data.admission.requirements.adapter_envelope.contract
import future.keywords.not

_policy := {"adapters": {"may_be_enabled": true, "limits": {"envelope_bytes": 100}}}

test_enabled if {
	contract.enabled with input as {"enabled": true} with data.policy as _policy
	every facts in [{"enabled": false}, {"enabled": "true"}, {"enabled": null}, {}] {
		not contract.enabled with input as facts with data.policy as _policy
	}
	every policy in [{}, {"adapters": {"may_be_enabled": false}}, {"adapters": {"may_be_enabled": "true"}}] {
		not contract.enabled with input as {"enabled": true} with data.policy as policy
	}
}

test_kept if {
	contract.kept({"id": "operation", "stated": "a", "admitted": ["b", "a"]}) with data.policy as _policy
	every term in [
		{"id": "operation", "stated": "c", "admitted": ["b", "a"]},
		{"id": "operation", "stated": "a", "admitted": []},
		{"id": "operation", "stated": "a"},
		{"id": "operation", "admitted": ["a"]},
		{"id": "operation", "stated": null, "admitted": [null]},
		{"id": "operation", "bytes": 1},
		{},
	] {
		not contract.kept(term) with data.policy as _policy
	}
}

test_kept_within_size if {
	every bytes in [0, 100] {
		contract.kept({"id": "size", "bytes": bytes}) with data.policy as _policy
	}
	every bytes in [101, null, "1", [1]] {
		not contract.kept({"id": "size", "bytes": bytes}) with data.policy as _policy
	}
	not contract.kept({"id": "size"}) with data.policy as _policy
	every policy in [{}, {"adapters": {}}] {
		not contract.kept({"id": "size", "bytes": 1}) with data.policy as policy
	}
	every wrong in [null, true, "", [], {}] {
		policy := {"adapters": {"limits": {"envelope_bytes": wrong}}}
		not contract.kept({"id": "size", "bytes": 1}) with data.policy as policy
	}
}
