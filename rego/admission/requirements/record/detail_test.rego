package admission.requirements.record.detail_test

import data.admission.requirements.record.detail
import future.keywords.not

_policy(profile) := {"operations": {
	"profile": profile,
	"profiles": {
		"closed": {"payload_detail": false, "retention_days_min": 30},
		"debug": {"payload_detail": true, "retention_days_min": 0},
	},
}}

_requests := {
	"summary": {"detail": "summary", "retention_days": 30},
	"payload": {"detail": "payload", "retention_days": 30},
	"too short": {"detail": "summary", "retention_days": 29},
	"other detail": {"detail": "everything", "retention_days": 30},
	"no detail": {"retention_days": 30},
	"no days": {"detail": "summary"},
	"days are text": {"detail": "summary", "retention_days": "30"},
	"decisions": {"detail": "decisions", "retention_days": 30, "policy_in_force": true},
	"other policy": {"detail": "decisions", "retention_days": 30, "policy_in_force": false},
	"policy not looked at": {"detail": "decisions", "retention_days": 30},
	"days are null": {"detail": "summary", "retention_days": null},
}

_record := {"decisions", "other policy", "policy not looked at"}

_summaries := {"summary", "too short", "no days", "days are text", "days are null"} | _record

_counted := {"summary", "payload", "other detail", "no detail"} | _record

test_detail_admitted if {
	held := {[profile, name] |
		some profile in ["closed", "debug", "unknown"]
		some name, request in _requests
		detail.detail_admitted with input as request with data.policy as _policy(profile)
	}
	summaries := {[profile, name] | some profile in ["closed", "debug", "unknown"]; some name in _summaries}
	held == summaries | {["debug", "payload"]}
}

test_kept_long_enough if {
	held := {[profile, name] |
		some profile in ["closed", "debug", "unknown"]
		some name, request in _requests
		detail.kept_long_enough with input as request with data.policy as _policy(profile)
	}
	counted := {[profile, name] | some profile in ["closed", "debug"]; some name in _counted}
	held == counted | {["debug", "too short"]}
}

test_policy_in_force if {
	held := {name | some name, request in _requests; detail.policy_in_force with input as request}
	held == (object.keys(_requests) - {"other detail", "no detail"}) - {"other policy", "policy not looked at"}
	every one in ["everything", null] {
		not detail.policy_in_force with input as {"detail": one, "policy_in_force": true}
	}
}

test_values_missing if {
	not detail.detail_admitted with input as _requests.payload with data.policy as {}
	not detail.kept_long_enough with input as _requests.summary with data.policy as {}
}
