package admission.requirements.code_output.file_test

import data.admission.requirements.code_output.file
import future.keywords.not

_policy := {"secrets": {"forms": {"own": {"prefixes": ["own-"], "rest": "[a-z]{8}"}}}}

test_free_of_secrets if {
	left := {"id": "a", "bytes": 1, "secret": false}
	file.free_of_secrets(left) with data.policy as _policy
	not file.free_of_secrets(object.union(left, {"secret": true})) with data.policy as _policy
	not file.free_of_secrets({"id": "a", "bytes": 1}) with data.policy as _policy
	not file.free_of_secrets(left) with data.policy as {"secrets": {"forms": {}}}
	not file.free_of_secrets(left) with data.policy as {}
}
