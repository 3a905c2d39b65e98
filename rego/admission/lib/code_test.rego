package admission.lib.code_test

import data.admission.lib.code
import future.keywords.not

_policy := {"code": {
	"languages": ["python", "javascript"],
	"execution": {"python": "standard"},
	"max_seconds": 25,
	"hints": {
		"network_access": ["denied", "none", "off"],
		"max_code_chars": {"default": 2400, "minimum": 200, "maximum": 8000},
		"exec_timeout_seconds": {"default": 2, "minimum": 0.2, "maximum": 20},
	},
}}

_network(hint) := {"hints": {"network_access": hint}}

test_network_denied if {
	held := {name |
		some name, hint in {
			"absent": {"stated": false},
			"denied": {"stated": true, "value": "denied"},
			"off": {"stated": true, "value": "off"},
			"allowed": {"stated": true, "value": "allowed"},
			"no word": {"stated": true},
			"null": {"stated": true, "value": null},
			"no fact": {},
		}
		code.network_denied with input as _network(hint) with data.policy as _policy
	}
	held == {"absent", "denied", "off"}
	not code.network_denied with input as {} with data.policy as _policy
	not code.network_denied with input as _network({"stated": true, "value": "off"}) with data.policy as {}
}

test_in_time if {
	held := {elapsed |
		some elapsed in [0, 25000, 25001, -1, null, "1"]
		code.in_time with input as {"elapsed_ms": elapsed} with data.policy as _policy
	}
	held == {0, 25000}
	not code.in_time with input as {} with data.policy as _policy
	not code.in_time with input as {"elapsed_ms": 0} with data.policy as {}
}

test_kept if {
	values := {
		[{"readable": false}, 2400, 2],
		[{"readable": true, "value": 1}, 200, 1],
		[{"readable": true, "value": 9000}, 8000, 20],
		[{"readable": true, "value": -1}, 200, 0.2],
		[{"readable": true, "value": 300}, 300, 20],
		[{"readable": false, "value": 300}, 2400, 2],
	}
	every value in values {
		request := {"hints": {"max_code_chars": value[0], "exec_timeout_seconds": value[0]}}
		code.max_code_chars == value[1] with input as request with data.policy as _policy
		code.exec_timeout_seconds == value[2] with input as request with data.policy as _policy
	}
}

test_kept_missing if {
	every hint in [
		{}, {"readable": null}, {"readable": null, "value": 300}, {"readable": true}, {"readable": true, "value": null},
	] {
		not code.max_code_chars with input as {"hints": {"max_code_chars": hint}} with data.policy as _policy
	}
	not code.max_code_chars with input as {} with data.policy as _policy
	stated := {"hints": {"max_code_chars": {"readable": true, "value": 300}}}
	every value in ["minimum", "maximum"] {
		policy := json.remove(_policy, [concat("/", ["code", "hints", "max_code_chars", value])])
		not code.max_code_chars with input as stated with data.policy as policy
		change := [{"op": "replace", "path": concat("/", ["/code/hints/max_code_chars", value]), "value": "300"}]
		not code.max_code_chars with input as stated with data.policy as json.patch(_policy, change)
	}
	hint := {"hints": {"max_code_chars": {"readable": false}}}
	not code.max_code_chars with input as hint with data.policy as {}
}

test_languages if {
	hints := {
		["javascript", "python"]: {"readable": false},
		["python"]: {"readable": true, "values": ["python", "ruby"]},
		[]: {"readable": true, "values": ["ruby"]},
	}
	every wanted, hint in hints {
		code.languages == wanted with input as {"hints": {"allowed_languages": hint}} with data.policy as _policy
	}
	code.languages == [] with input as {"hints": {"allowed_languages": {"readable": true}}} with data.policy as _policy
	not code.languages with input as {"hints": {"allowed_languages": {}}} with data.policy as _policy
	not code.languages with input as {"hints": {"allowed_languages": {"readable": false}}} with data.policy as {}
}

test_languages_are_words if {
	policy := {"code": {"languages": [1, "python"]}}
	every hint in [{"readable": false}, {"readable": false, "values": [1]}] {
		code.languages == ["python"] with input as {"hints": {"allowed_languages": hint}} with data.policy as policy
	}
}

test_execution_languages if {
	code.execution_languages == ["python"] with data.policy as _policy
	not code.execution_languages with data.policy as {}
}
