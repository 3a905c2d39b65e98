package admission.requirements.tool_result.result_test

import data.admission.requirements.tool_result.result
import future.keywords.not

_policy := {"tools": {"tools": {
	"writer": {"side_effects": ["read", "write"]},
	"silent": {"side_effects": ["none"]},
}}}

_digest := "sha256:a"

_requests := {
	"text": {"tool": "writer", "status": "ok", "result": {"bytes": 0, "digest": _digest, "media": "text"}},
	"json": {"tool": "writer", "status": "ok", "result": {"bytes": 1, "digest": _digest, "media": "json"}},
	"binary": {"tool": "writer", "status": "ok", "result": {"bytes": 1, "digest": _digest, "media": "binary"}},
	"no media": {"tool": "writer", "status": "ok", "result": {"bytes": 1, "digest": _digest}},
	"no digest": {"tool": "writer", "status": "ok", "result": {"bytes": 1, "media": "text"}},
	"no bytes": {"tool": "writer", "status": "ok", "result": {"digest": _digest, "media": "text"}},
	"bytes are null": {"tool": "writer", "status": "ok", "result": {"bytes": null, "digest": _digest, "media": "text"}},
	"no result": {"tool": "writer", "status": "ok"},
	"validation error": {"tool": "writer", "status": "error", "error": {"kind": "validation"}},
	"other error": {"tool": "writer", "status": "error", "error": {"kind": "other"}},
	"error of no kind": {"tool": "writer", "status": "error", "error": {}},
	"no error": {"tool": "writer", "status": "error", "result": {"bytes": 1, "digest": _digest, "media": "text"}},
	"error of another status": {"tool": "writer", "status": "done", "error": {"kind": "other"}},
	"other status": {"tool": "writer", "status": "done", "result": {"bytes": 1, "digest": _digest, "media": "text"}},
	"no status": {"tool": "writer", "result": {"bytes": 1, "digest": _digest, "media": "text"}},
}

test_text_or_error if {
	held := {name | some name, request in _requests; result.text_or_error with input as request}
	held == {"text", "json", "validation error", "other error"}
}

test_known if {
	result.known with input as _requests.text with data.policy as _policy
	not result.known with input as {"tool": "reader"} with data.policy as _policy
	not result.known with input as {} with data.policy as _policy
	not result.known with input as {"tool": null} with data.policy as _policy
	not result.known with input as _requests.text with data.policy as {}
}

test_side_effect_declared if {
	effects := {
		"read": {"id": "a", "class": "read"},
		"write": {"id": "a", "class": "write", "target_digest": _digest},
		"network": {"id": "a", "class": "network"},
		"none": {"id": "a", "class": "none"},
		"no class": {"id": "a"},
		"class is null": {"id": "a", "class": null},
	}
	held := {[tool, name] |
		some tool in ["writer", "silent", "unknown"]
		some name, effect in effects
		result.side_effect_declared(effect) with input as {"tool": tool} with data.policy as _policy
	}
	held == {["writer", "read"], ["writer", "write"]}
	nothing := {"tools": {"tools": {"writer": {"side_effects": [null]}}}}
	not result.side_effect_declared(effects["class is null"]) with input as {"tool": "writer"} with data.policy as nothing
	not result.side_effect_declared(effects.read) with input as {"tool": "writer"} with data.policy as {}
	not result.side_effect_declared(effects.read) with input as {} with data.policy as _policy
}
