package admission.requirements.subagent.tool_test

import data.admission.requirements.subagent.tool
import future.keywords.not

_operations := {
	"spawn": {"tool": "start", "timeout_seconds": 5},
	"poll": {"tool": "look", "timeout_seconds": 5},
}

_policy := {"subagents": {"operations": _operations}}

_asked(operation) := {"operation": operation, "asked": {"policy": "p", "profile": "f"}}

_requests := {
	"spawn": _asked("spawn"),
	"poll": _asked("poll"),
	"other operation": _asked("other"),
	"no operation": {"asked": {"policy": "p", "profile": "f"}},
	"nothing asked": {"operation": "spawn"},
}

_outcome(asked, "start") := "allow" if asked.policy == "p"

_outcome(asked, "look") := "confirm" if asked.policy == "p"

_denies(_, tool) := "deny" if tool in {"start", "look"}

_profiled(asked, "start") if asked.profile == "f"

test_granted if {
	held := {name |
		some name, one in _requests
		tool.granted with input as one with data.policy as _policy with data.admission.lib.tools.outcome_by_name as _outcome
	}
	held == {"spawn", "poll"}
	not tool.granted with input as _requests.spawn
		with data.policy as _policy
		with data.admission.lib.tools.outcome_by_name as _denies
}

test_unasked if {
	held := {name |
		some name, one in _requests
		tool.unasked with input as one with data.policy as _policy with data.admission.lib.tools.outcome_by_name as _outcome
	}
	held == {"spawn"}
}

test_profiled if {
	held := {name |
		some name, one in _requests
		tool.profiled with input as one with data.policy as _policy with data.admission.lib.tools.in_profile as _profiled
	}
	held == {"spawn"}
}

test_values_missing if {
	not tool.granted with input as _requests.spawn with data.policy as {}
	not tool.unasked with input as _requests.spawn with data.policy as {}
	not tool.profiled with input as _requests.spawn with data.policy as {}
}
