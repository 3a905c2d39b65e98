package admission.requirements.tool_contract.delivery_test

import data.admission.requirements.tool_contract.delivery
import future.keywords.not

_hits := {
	"mentioned": {"id": "contract/description:1", "form": "inline"},
	"line": {"id": "contract/description:1", "form": "line"},
	"fenced": {"id": "contract/description:1", "form": "fenced"},
	"field": {"id": "contract/handler", "form": "field"},
	"no form": {"id": "contract/handler"},
	"form is null": {"id": "contract/handler", "form": null},
}

_only(what) := {"proposals": {"admitted": {what: ["inline"]}}}

_nothing := {"proposals": {"admitted": {
	"python_code": [],
	"shell_command": [],
	"package_name": [],
	"executable_handler": [],
	"migration": [],
}}}

test_python_free if {
	held := {name | some name, hit in _hits; delivery.python_free(hit) with data.policy as _only("python_code")}
	held == {"mentioned"}
}

test_command_free if {
	held := {name | some name, hit in _hits; delivery.command_free(hit) with data.policy as _only("shell_command")}
	held == {"mentioned"}
}

test_package_free if {
	held := {name | some name, hit in _hits; delivery.package_free(hit) with data.policy as _only("package_name")}
	held == {"mentioned"}
}

test_handler_free if {
	held := {name | some name, hit in _hits; delivery.handler_free(hit) with data.policy as _only("executable_handler")}
	held == {"mentioned"}
}

test_migration_free if {
	held := {name | some name, hit in _hits; delivery.migration_free(hit) with data.policy as _only("migration")}
	held == {"mentioned"}
}

test_the_policy_decides if {
	lines := {"proposals": {"admitted": {"shell_command": ["inline", "line"]}}}
	held := {name | some name, hit in _hits; delivery.command_free(hit) with data.policy as lines}
	held == {"mentioned", "line"}
}

test_values_missing if {
	every policy in [{}, {"proposals": {}}, _nothing, _only("another")] {
		not delivery.python_free(_hits.mentioned) with data.policy as policy
		not delivery.command_free(_hits.mentioned) with data.policy as policy
		not delivery.package_free(_hits.mentioned) with data.policy as policy
		not delivery.handler_free(_hits.mentioned) with data.policy as policy
		not delivery.migration_free(_hits.mentioned) with data.policy as policy
	}
}
