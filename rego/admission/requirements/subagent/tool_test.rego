package admission.requirements.subagent.tool_test

import data.admission.requirements.subagent.tool
import future.keywords.not

_operations := {
	"spawn": {"tool": "start", "timeout_seconds": 5},
	"poll": {"tool": "look", "timeout_seconds": 5},
	"kill": {"tool": "end", "timeout_seconds": 5},
}

_policy := {
	"subagents": {"operations": _operations},
	"tools": {"policies": {
		"p": {"base": "confirm_all", "rulesets": ["r"], "principals": "any"},
		"q": {"base": "confirm_all", "rulesets": [], "principals": ["lee"]},
	}},
}

_asked(operation) := {"operation": operation, "context": {"policy": "p", "profile": "f"}}

_requests := {
	"spawn": _asked("spawn"),
	"poll": _asked("poll"),
	"kill": _asked("kill"),
	"other operation": _asked("other"),
	"no operation": {"context": {"policy": "p", "profile": "f"}},
	"nothing asked": {"operation": "spawn"},
	"no policy": {"operation": "spawn", "context": {"profile": "f"}},
	"other policy": {"operation": "spawn", "context": {"policy": "o", "profile": "f"}},
	"policy of others": {"operation": "spawn", "context": {"policy": "q", "profile": "f"}},
}

# What the tool policy says of three tools: one is granted, one asks a person, one is taken away by a rule.
_outcome(asked, tool) := {"start": "allow", "look": "confirm", "end": "deny"}[tool] if asked.policy == "p"

_matching("p", tool, "deny", {"always"}, []) := {"start": set(), "look": set(), "end": {0}}[tool]

_profiled(asked, "start") if asked.profile == "f"

test_granted if {
	held := {name |
		some name, one in _requests
		tool.granted_by_policy with input as one
			with data.policy as _policy
			with data.admission.lib.tools.outcome_by_name as _outcome
			with data.admission.lib.tool_rules.matching as _matching
	}
	held == {"spawn", "poll", "kill"}
}

test_no_deny_rule if {
	held := {name |
		some name, one in _requests
		tool.no_deny_rule with input as one
			with data.policy as _policy
			with data.admission.lib.tools.outcome_by_name as _outcome
	}
	held == {"spawn", "poll"}
}

test_unasked if {
	held := {name |
		some name, one in _requests
		tool.granted_without_asking with input as one
			with data.policy as _policy
			with data.admission.lib.tools.outcome_by_name as _outcome
	}
	held == {"spawn"}
}

test_profiled if {
	held := {name |
		some name, one in _requests
		tool.in_profile with input as one with data.policy as _policy with data.admission.lib.tools.in_profile as _profiled
	}
	held == {"spawn", "no policy", "other policy", "policy of others"}
}

test_policy_known if {
	held := {name | some name, one in _requests; tool.policy_known with input as one with data.policy as _policy}
	held == object.keys(_requests) - {"other policy"}
}

test_principal_admitted if {
	held := {name | some name, one in _requests; tool.principal_admitted with input as one with data.policy as _policy}
	held == object.keys(_requests) - {"other policy", "policy of others"}
	request := object.union(_requests["policy of others"], {"caller": {"principal": "lee"}})
	tool.principal_admitted with input as request with data.policy as _policy
}

test_values_missing if {
	not tool.granted_by_policy with input as _requests.spawn with data.policy as {}
	not tool.no_deny_rule with input as _requests.spawn with data.policy as {}
	not tool.granted_without_asking with input as _requests.spawn with data.policy as {}
	not tool.in_profile with input as _requests.spawn with data.policy as {}
	not tool.policy_known with input as _requests.spawn with data.policy as {}
	not tool.principal_admitted with input as _requests.spawn with data.policy as {}
}
