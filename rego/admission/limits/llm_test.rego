package admission.limits.llm_test

import data.admission.limits.llm
import future.keywords.not

_policy := {"llm": {
	"providers": {"a": {"host": "a.example", "port": 443}},
	"models": {"m": {"answers_as": ["m", "m-1"]}},
	"prices": {"m": {"currency": "USD", "prompt": "1", "completion": "2"}},
	"request": {"max_answer_bytes": 100, "seconds": 20, "finish_reasons": ["stop"], "unmetered_answers": false},
	"retry": {"errors": ["throttled"], "max_attempts": 4, "first_wait_ms": 1000, "longest_wait_ms": 3000},
}}

_clean := {
	"llm": {
		"url": {"digest": "sha256:aa", "host": "a.example", "port": 443},
		"model": "m", "prompt_digest": "sha256:bb", "stream": false, "timeout_seconds": 10, "attempt": 1,
	},
	"addresses": [{"text": "8.8.8.8"}],
}

_attempt(number) := object.union(_clean, {"llm": {"attempt": number}})

test_limits if {
	limits := llm.limits with input as _clean with data.policy as _policy
	limits == {
		"provider": "a", "url_digest": "sha256:aa", "host": "a.example", "port": 443, "addresses": ["8.8.8.8"],
		"status": 200, "max_bytes": 100, "seconds": 10, "model": "m", "prompt_digest": "sha256:bb", "stream": false,
		"answers_as": ["m", "m-1"], "finish_reasons": ["stop"], "unmetered": false, "prices": [_policy.llm.prices.m],
		"retry_errors": ["throttled"], "wait_least_ms": 500, "wait_most_ms": 1000, "longest_wait_ms": 3000,
	}
}

test_waits_grow_and_end if {
	waits := [[limits.wait_least_ms, limits.wait_most_ms, limits.retry_errors] |
		some number in [1, 2, 3, 4, 5]
		limits := llm.limits with input as _attempt(number) with data.policy as _policy
	]
	waits == [
		[500, 1000, ["throttled"]], [1000, 2000, ["throttled"]], [1500, 3000, ["throttled"]],
		[1500, 3000, []], [1500, 3000, []],
	]
}

test_a_timeout_only_lowers if {
	longer := object.union(_clean, {"llm": {"timeout_seconds": 60}})
	limits := llm.limits with input as longer with data.policy as _policy
	limits.seconds == 20
}

test_without_a_price_there_is_none if {
	limits := llm.limits with input as _clean with data.policy as json.remove(_policy, ["llm/prices/m"])
	limits.prices == []
}

test_incomplete if {
	every request in [
		{},
		json.remove(_clean, ["llm/url/digest"]),
		json.remove(_clean, ["llm/url/host"]),
		json.remove(_clean, ["llm/url/port"]),
		json.remove(_clean, ["llm/model"]),
		json.remove(_clean, ["llm/prompt_digest"]),
		json.remove(_clean, ["llm/stream"]),
		json.remove(_clean, ["llm/timeout_seconds"]),
		json.remove(_clean, ["llm/attempt"]),
		json.remove(_clean, ["addresses"]),
		json.remove(_clean, ["addresses/0/text"]),
		object.union(_clean, {"addresses": []}),
		object.union(_clean, {"llm": {"timeout_seconds": null}}),
		_attempt("1"),
		_attempt(null),
	] {
		not llm.limits with input as request with data.policy as _policy
	}
}

test_values_missing if {
	every gone in [
		"providers/a", "models", "models/m", "models/m/answers_as", "request/max_answer_bytes",
		"request/unmetered_answers", "request/seconds",
		"request/finish_reasons", "retry/errors", "retry/max_attempts", "retry/first_wait_ms", "retry/longest_wait_ms",
	] {
		not llm.limits with input as _clean with data.policy as {"llm": json.remove(_policy.llm, [gone])}
	}
}
