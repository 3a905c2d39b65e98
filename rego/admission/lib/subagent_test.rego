package admission.lib.subagent_test

import data.admission.lib.subagent
import future.keywords.not

_operations := {
	"spawn": {"tool": "start", "timeout_seconds": 5},
	"no tool": {"timeout_seconds": 5},
	"odd tool": {"tool": 1, "timeout_seconds": 5},
	"no time": {"tool": "start"},
	"odd time": {"tool": "start", "timeout_seconds": "5"},
}

_policy := {
	"subagents": {"operations": _operations},
	"budgets": {"quotas": {"subagent": {"user": {"limit": 3}, "odd": {"limit": null}}}},
}

test_operations if {
	{one | some one in ["spawn", "run", "poll", "cancel", "kill", "", null, 1]; subagent.starts(one)} == {"spawn", "run"}
	attended := {one | some one in ["spawn", "run", "poll", "cancel", "kill", "", null, 1]; subagent.attends(one)}
	attended == {"poll", "cancel", "kill"}
}

test_row if {
	found := {name: row |
		some name in [null, 1, "nothing", "spawn", "no tool", "odd tool", "no time", "odd time"]
		row := subagent.row(name) with data.policy as _policy
	}
	found == {"spawn": {"tool": "start", "timeout_seconds": 5}}
	not subagent.row("spawn") with data.policy as {}
}

_quotas := {
	"nothing used": [{"id": "user", "used": 0, "amount": 1}],
	"one left": [{"id": "user", "used": 2, "amount": 1}],
	"none left": [{"id": "user", "used": 3, "amount": 1}],
	"too large": [{"id": "user", "used": 2, "amount": 2}],
	"another one": [{"id": "account", "used": 0, "amount": 1}],
	"without a ceiling": [{"id": "odd", "used": 0, "amount": 1}],
	"not counted": [{"id": "user", "amount": 1}],
	"no amount": [{"id": "user", "used": 0}],
	"used is null": [{"id": "user", "used": null, "amount": 1}],
	"amount is text": [{"id": "user", "used": 0, "amount": "1"}],
	"empty": [],
	"null": null,
}

test_within_quota if {
	held := {name |
		some name, quotas in _quotas
		subagent.within_quota(quotas, "user") with data.policy as _policy
	}
	held == {"nothing used", "one left"}
	not subagent.within_quota(_quotas["nothing used"], "user") with data.policy as {}
	not subagent.within_quota(_quotas["without a ceiling"], "odd") with data.policy as _policy
}
