package admission.requirements.runner_request.tool_test

import data.admission.requirements.runner_request.tool
import future.keywords.not

_policy := {"runners": {
	"backends": {"here": {"host": "runner"}, "there": {"host": "remote"}},
	"default_backend": "here",
	"tools": {"gateway": {"runs_on": "runner"}, "client": {"runs_on": "client"}},
	"runner_host_tools": ["best_effort", "undeclared"],
}}

_tools := {
	"gateway": {"id": "a", "kind": "gateway", "code": false},
	"client": {"id": "a", "kind": "client", "code": false},
	"code": {"id": "a", "kind": "code", "code": true},
	"gateway with code": {"id": "a", "kind": "gateway", "code": true},
	"no kind": {"id": "a", "code": false},
	"kind is null": {"id": "a", "kind": null, "code": false},
	"no word on code": {"id": "a", "kind": "gateway"},
	"code is null": {"id": "a", "kind": "gateway", "code": null},
}

_run(sandbox, enforcement) := {
	"agent": {"sandbox_stated": true, "sandbox": sandbox},
	"sandbox_permission": {"enforcement": enforcement},
}

test_code_free if {
	{name | some name, item in _tools; tool.code_free(item)} == {"gateway", "client", "no kind", "kind is null"}
}

test_kind_admitted if {
	held := {name | some name, item in _tools; tool.kind_admitted(item) with data.policy as _policy}
	held == {"gateway", "client", "gateway with code", "no word on code", "code is null"}
}

test_within_sandbox if {
	every run in [_run("here", "strict"), _run("there", "best_effort"), _run("there", "undeclared")] {
		held := {name |
			some name, item in _tools
			tool.within_sandbox(item) with input as run with data.policy as _policy
		}
		held == object.keys(_tools) - {"no kind", "kind is null"}
	}
	every run in [_run("there", "strict"), _run("there", null), _run("nowhere", "strict"), {}] {
		held := {name |
			some name, item in _tools
			tool.within_sandbox(item) with input as run with data.policy as _policy
		}
		held == {"client"}
	}
}

test_values_missing if {
	not tool.kind_admitted(_tools.gateway) with data.policy as {}
	every run in [_run("here", "strict"), _run("there", "best_effort")] {
		not tool.within_sandbox(_tools.gateway) with input as run with data.policy as {}
		not tool.within_sandbox(_tools.client) with input as run with data.policy as {}
	}
}
