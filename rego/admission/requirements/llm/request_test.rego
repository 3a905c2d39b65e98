package admission.requirements.llm.request_test

import data.admission.requirements.llm.request
import future.keywords.not

_policy := {"llm": {
	"providers": {"a": {"host": "a.example", "port": 443, "models": ["m"]}},
	"models": {"m": {"answers_as": ["m"]}, "n": {"answers_as": ["n"]}},
	"request": {"max_prompt_bytes": 10, "max_output_tokens": 5},
}}

_clean := {"llm": {"url": {"host": "a.example", "port": 443}, "model": "m"}}

test_model_admitted if {
	request.model_admitted with input as _clean with data.policy as _policy
	every asked in [
		object.union(_clean, {"llm": {"model": "n"}}),
		object.union(_clean, {"llm": {"model": null}}),
		object.union(_clean, {"llm": {"url": {"host": "b.example"}}}),
		json.remove(_clean, ["llm/model"]),
		{},
	] {
		not request.model_admitted with input as asked with data.policy as _policy
	}
	every gone in ["providers", "providers/a", "providers/a/models", "models", "models/m", "models/m/answers_as"] {
		policy := {"llm": json.remove(_policy.llm, [gone])}
		not request.model_admitted with input as _clean with data.policy as policy
	}
}

test_prompt_stated if {
	held := {number |
		some number in [-1, 0, 1, "1", null]
		request.prompt_stated with input as {"llm": {"messages": number}}
	}
	held == {1}
	not request.prompt_stated with input as {}
}

test_prompt_small_enough if {
	held := {number |
		some number in [-1, 0, 10, 11, "1", null]
		request.prompt_small_enough with input as {"llm": {"prompt_bytes": number}} with data.policy as _policy
	}
	held == {0, 10}
	not request.prompt_small_enough with input as {} with data.policy as _policy
	not request.prompt_small_enough with input as {"llm": {"prompt_bytes": 1}} with data.policy as {}
}

test_output_short_enough if {
	held := {number |
		some number in [-1, 0, 5, 6, "1", null]
		request.output_short_enough with input as {"llm": {"max_output_tokens": number}} with data.policy as _policy
	}
	held == {5}
	not request.output_short_enough with input as {} with data.policy as _policy
	not request.output_short_enough with input as {"llm": {"max_output_tokens": 1}} with data.policy as {}
}

test_sizes_are_numbers if {
	policy := {"llm": {"request": {"max_prompt_bytes": {}, "max_output_tokens": {}}}}
	every wrong in [null, true, "", [], {}] {
		given := {"llm": {"prompt_bytes": wrong, "max_output_tokens": wrong}}
		not request.prompt_small_enough with input as given with data.policy as policy
		not request.output_short_enough with input as given with data.policy as policy
	}
}
