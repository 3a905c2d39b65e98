package admission.requirements.code_scan.module_test

import data.admission.requirements.code_scan.module
import future.keywords.not

_policy := {"code": {"scan": {"python": {
	"modules": {"json": ["loads"]},
}}}}

_input := {"scan": {"language": "python", "imports": [{"id": "json", "kind": "module"}]}}

test_import_allowed if {
	found := {"id": "json", "kind": "module"}
	module.import_allowed(found) with input as _input with data.policy as _policy
	not module.import_allowed(found) with input as _input with data.policy as {}
	not module.import_allowed(found) with input as {} with data.policy as _policy
	every other in [
		{"id": "os", "kind": "module"},
		{"id": "json", "kind": "relative"},
		{"id": "json"},
		{},
	] {
		not module.import_allowed(other) with input as _input with data.policy as _policy
	}
}

test_member_allowed if {
	found := {"id": "json.loads", "top": "json", "module": "json", "name": "loads"}
	module.member_allowed(found) with input as _input with data.policy as _policy
	not module.member_allowed(found) with input as {} with data.policy as {}
	module.member_allowed(found) with input as _input with data.policy as {} # its import is refused
	every other in [
		{"id": "json.codecs", "top": "json", "module": "json", "name": "codecs"},
		{"id": "json.loads", "top": "json", "name": "loads"},
		{},
	] {
		not module.member_allowed(other) with input as _input with data.policy as _policy
	}
}

test_module_plain if {
	found := {"id": "json", "top": "json", "as_value": false}
	module.module_plain(found) with input as _input with data.policy as _policy
	every other in [
		{"id": "json", "top": "json", "as_value": true},
		{"id": "json", "top": "json"},
		{},
	] {
		not module.module_plain(other) with input as _input with data.policy as _policy
	}
}
