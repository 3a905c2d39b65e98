package admission.limits.adapter_test

import data.admission.limits.adapter
import future.keywords.not

_input := {
	"manifest": {
		"digest": "sha256:mm",
		"id": "contacts",
		"environment_identity": "contacts_sqlite",
		"execution": "in_process",
		"supported_operations": [{"id": "tools/list", "name": "tools/list"}],
	},
	"source": {"policy_hash": "sha256:aa"},
	"tools": [{"id": "contacts_list", "name": "contacts_list"}],
}

test_limits if {
	limits := adapter.limits with input as _input
	limits == {
		"manifest": "sha256:mm",
		"adapter": "contacts",
		"environment": "contacts_sqlite",
		"source_policy_hash": "sha256:aa",
		"execution": "in_process",
		"operations": ["tools/list"],
		"tools": ["contacts_list"],
	}
}

test_incomplete if {
	every path in [
		"manifest/digest", "manifest/id", "manifest/environment_identity", "manifest/execution",
		"manifest/supported_operations", "manifest/supported_operations/0/name", "source/policy_hash", "source", "tools",
		"tools/0/name",
	] {
		not adapter.limits with input as json.remove(_input, [path])
	}
}
