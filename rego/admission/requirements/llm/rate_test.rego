package admission.requirements.llm.rate_test

import data.admission.requirements.llm.rate
import future.keywords.not

_policy := {
	"budgets": {"quotas": {"llm": {"host": {"limit": 2}}}},
	"llm": {"retry": {"errors": ["throttled"], "max_attempts": 3}},
}

_used(number) := {"quotas": [{"id": "host", "used": number, "amount": 1}]}

test_rate_left if {
	held := {number |
		some number in [0, 1, 2, "0", null]
		rate.rate_left with input as _used(number) with data.policy as _policy
	}
	held == {0, 1}
	every request in [
		{"quotas": []},
		{"quotas": [{"id": "other", "used": 0, "amount": 1}]},
		{"quotas": [{"id": "host", "used": 0}]},
		{},
	] {
		not rate.rate_left with input as request with data.policy as _policy
	}
	not rate.rate_left with input as _used(0) with data.policy as {}
}

test_attempt_left if {
	held := {number |
		some number in [-1, 0, 1, 3, 4, "1", null]
		rate.attempt_left with input as {"llm": {"attempt": number}} with data.policy as _policy
	}
	held == {1, 3}
	not rate.attempt_left with input as {} with data.policy as _policy
	not rate.attempt_left with input as {"llm": {"attempt": 1}} with data.policy as {}
}

test_error_passes if {
	held := {[number, after] |
		some number in [0, 1, 2, "2", null]
		some after in ["none", "throttled", "key_refused", null]
		rate.error_passes with input as {"llm": {"attempt": number, "after": after}} with data.policy as _policy
	}
	held == {[1, "none"], [2, "throttled"]}
	not rate.error_passes with input as {"llm": {"attempt": 2}} with data.policy as _policy
	not rate.error_passes with input as {"llm": {"attempt": 2, "after": "throttled"}} with data.policy as {}
}

test_attempt_is_a_number if {
	policy := {"llm": {"retry": {"max_attempts": {}}}}
	every wrong in [null, true, "", [], {}] {
		not rate.attempt_left with input as {"llm": {"attempt": wrong}} with data.policy as policy
	}
}
