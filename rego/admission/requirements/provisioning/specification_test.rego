package admission.requirements.provisioning.specification_test

import data.admission.requirements.provisioning.specification
import future.keywords.not

values := {"provisioning": {
	"roles": ["Actor"],
	"tools": ["http_get"],
	"constraints": {"max_turns": 10, "max_tokens": 100},
	"prompt_bytes": 20,
	"code_markers": ["require(", "eval("],
}}

of(changes) := {"specification": object.union(
	{
		"name": "buyer",
		"role": "Actor",
		"system_prompt": "You buy.",
		"prompt_bytes": 8,
		"constraints": {"max_turns": 10, "max_tokens": 100},
	},
	changes,
)}

holds("role") if specification.role_admitted

holds("constraints") if specification.constrained

holds("size") if specification.prompt_small_enough

holds("code") if specification.prompt_is_prose

_open contains name if {
	some name in ["role", "constraints", "size", "code"]
	not holds(name)
}

broken(given) := found if {
	# regal ignore:external-reference,with-outside-test-context
	found := _open with input as given with data.policy as values
}

test_the_clean_case if broken(of({})) == set()

test_each_way_not_to_hold if {
	broken(of({"role": "Judge"})) == {"role"}
	broken(of({"constraints": {"max_turns": 11}})) == {"constraints"}
	broken(of({"constraints": {"max_tokens": 101}})) == {"constraints"}
	broken(of({"prompt_bytes": 21})) == {"size"}
	broken(of({"system_prompt": "x = REQUIRE('fs')"})) == {"code"}
	broken(of({"system_prompt": "eval(1)"})) == {"code"}
	broken(of({"system_prompt": "eval \n (1)"})) == {"code"}
}

test_without_a_specification_nothing_holds if {
	every given in [{}, {"specification": null}, {"specification": []}] {
		broken(given) == {"role", "constraints", "size", "code"}
	}
}

test_what_is_mistyped_does_not_hold if {
	every wrong in [null, true, [], {}] {
		broken(of({"role": wrong})) == {"role"}
		broken(of({"prompt_bytes": wrong})) == {"size"}
		broken(of({"system_prompt": wrong})) == {"size", "code"}
	}
	broken({"specification": json.remove(of({}).specification, ["constraints/max_turns"])}) == {"constraints"}
	broken({"specification": json.remove(of({}).specification, ["name"])}) == {"role"}
}

test_without_values_nothing_holds if {
	_open == {"role", "constraints", "size", "code"} with input as of({}) with data.policy as {}
}

test_a_tool_is_listed if {
	specification.tool_admitted({"id": "http_get"}) with data.policy as values
	every wrong in [{"id": "shell"}, {"id": null}, {}] {
		not specification.tool_admitted(wrong) with data.policy as values
	}
	not specification.tool_admitted({"id": "http_get"}) with data.policy as {}
}

test_limits_of_another_type if {
	every wrong in [null, true, "", [], {}] {
		broken(of({"constraints": {"max_turns": wrong}})) == {"constraints"}
		changed := {"provisioning": object.union(values.provisioning, {"prompt_bytes": wrong})}
		_open == {"size"} with input as of({}) with data.policy as changed
	}
	every wrong in [null, true, 0, "", {}] {
		changed := {"provisioning": object.union(values.provisioning, {"code_markers": wrong})}
		_open == {"code"} with input as of({}) with data.policy as changed
	}
}

test_a_prompt_of_the_maximum_length if broken(of({"prompt_bytes": 20})) == set()
