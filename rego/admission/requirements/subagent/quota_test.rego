package admission.requirements.subagent.quota_test

import data.admission.requirements.subagent.quota
import future.keywords.not

_policy := {"budgets": {"quotas": {"subagent": {
	"conversation": {"limit": 1},
	"user": {"limit": 2},
	"account": {"limit": 3},
}}}}

_counted(used) := [{"id": name, "used": used, "amount": 1} | some name in ["conversation", "user", "account"]]

_requests := {
	"fresh": {"operation": "spawn", "quotas": _counted(0)},
	"runs": {"operation": "run", "quotas": _counted(0)},
	"second": {"operation": "spawn", "quotas": _counted(1)},
	"third": {"operation": "run", "quotas": _counted(2)},
	"fourth": {"operation": "spawn", "quotas": _counted(3)},
	"uncounted": {"operation": "spawn", "quotas": []},
	"no list": {"operation": "spawn"},
	"attends": {"operation": "poll", "quotas": []},
	"attends, no list": {"operation": "kill"},
	"other operation": {"operation": "other", "quotas": _counted(0)},
	"no operation": {"quotas": _counted(0)},
}

_free := {"attends", "attends, no list"}

test_conversation_left if {
	held := {name | some name, one in _requests; quota.conversation_left with input as one with data.policy as _policy}
	held == _free | {"fresh", "runs"}
}

test_user_left if {
	held := {name | some name, one in _requests; quota.user_left with input as one with data.policy as _policy}
	held == _free | {"fresh", "runs", "second"}
}

test_account_left if {
	held := {name | some name, one in _requests; quota.account_left with input as one with data.policy as _policy}
	held == _free | {"fresh", "runs", "second", "third"}
}

test_values_missing if {
	not quota.conversation_left with input as _requests.fresh with data.policy as {}
	not quota.user_left with input as _requests.fresh with data.policy as {}
	not quota.account_left with input as _requests.fresh with data.policy as {}
}
