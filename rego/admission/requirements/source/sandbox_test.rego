package admission.requirements.source.sandbox_test

import data.admission.requirements.source.sandbox
import future.keywords.not

_policy := {"sandbox": {"generated_code": ["disabled"], "redaction": true, "network": ["none"]}}

_request(statements) := {"bundle": {"sandbox": statements}}

_clean := {"generated_code": "disabled", "redaction": true, "network": "none"}

_requests(field, other) := {
	"clean": _request(_clean),
	"other": _request(object.union(_clean, {field: other})),
	"null": _request(object.union(_clean, {field: null})),
	"number": _request(object.union(_clean, {field: 0})),
	"list": _request(object.union(_clean, {field: [_clean[field]]})),
	"not stated": _request(json.remove(_clean, [field])),
	"no sandbox policy": {"bundle": {}},
}

test_generated_code_disabled if {
	held := {name |
		some name, request in _requests("generated_code", "sandboxed")
		sandbox.generated_code_disabled with input as request with data.policy as _policy
	}
	held == {"clean"}
}

test_redaction_on if {
	held := {name |
		some name, request in _requests("redaction", false)
		sandbox.redaction_on with input as request with data.policy as _policy
	}
	held == {"clean"}
}

test_network_closed if {
	held := {name |
		some name, request in _requests("network", "host")
		sandbox.network_closed with input as request with data.policy as _policy
	}
	held == {"clean"}
}

test_values_missing if {
	request := _request(_clean)
	not sandbox.generated_code_disabled with input as request with data.policy as {}
	not sandbox.generated_code_disabled with input as request with data.policy as {"sandbox": {"generated_code": []}}
	not sandbox.redaction_on with input as request with data.policy as {}
	not sandbox.redaction_on with input as request with data.policy as {"sandbox": {"redaction": false}}
	not sandbox.network_closed with input as request with data.policy as {}
	not sandbox.network_closed with input as request with data.policy as {"sandbox": {"network": []}}
}
