package admission.requirements.code_scan.text_test

import data.admission.requirements.code_scan.text
import future.keywords.not

_policy := {"code": {"scan": {"python": {
	"literals": ["dunder"],
	"computed": ["member_variable"],
}}}}

_input := {"scan": {"language": "python", "imports": [{"id": "json", "kind": "module"}]}}

test_literal_allowed if {
	found := {"id": "dunder"}
	text.literal_allowed(found) with input as _input with data.policy as _policy
	not text.literal_allowed(found) with input as _input with data.policy as {}
	not text.literal_allowed(found) with input as {} with data.policy as _policy
	every other in [
		{"id": "path"},
		{},
	] {
		not text.literal_allowed(other) with input as _input with data.policy as _policy
	}
}

test_computed_allowed if {
	found := {"id": "member_variable"}
	text.computed_allowed(found) with input as _input with data.policy as _policy
	not text.computed_allowed(found) with input as _input with data.policy as {}
	not text.computed_allowed(found) with input as {} with data.policy as _policy
	every other in [
		{"id": "format"},
		{},
	] {
		not text.computed_allowed(other) with input as _input with data.policy as _policy
	}
}

test_no_web_address if {
	text.no_web_address with input as {"scan": {"network_literals": 0}}
	every found in [1, null, "", false] {
		not text.no_web_address with input as {"scan": {"network_literals": found}}
	}
	not text.no_web_address with input as {}
}
