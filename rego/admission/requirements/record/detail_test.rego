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
	"days are null": {"detail": "summary", "retention_days": null},
}

_summaries := {"summary", "too short", "no days", "days are text", "days are null"}

_counted := {"summary", "payload", "other detail", "no detail"}

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

test_values_missing if {
	not detail.detail_admitted with input as _requests.payload with data.policy as {}
	not detail.kept_long_enough with input as _requests.summary with data.policy as {}
}
