package admission.requirements.tool_result.error_test

import data.admission.requirements.tool_result.error
import future.keywords.not

_policy(profile) := {"operations": {
	"profile": profile,
	"profiles": {"closed": {"tool_error_modes": ["safe"]}, "controlled": {"tool_error_modes": ["safe", "debug"]}},
}}

test_mode_admitted if {
	held := {[profile, mode] |
		some profile in ["closed", "controlled", "unknown"]
		some mode in ["safe", "debug", "trace", null]
		error.mode_admitted with input as {"error_mode": mode} with data.policy as _policy(profile)
	}
	held == {["closed", "safe"], ["controlled", "safe"], ["controlled", "debug"]}
	not error.mode_admitted with input as {} with data.policy as _policy("closed")
	not error.mode_admitted with input as {"error_mode": "safe"} with data.policy as {}
}

_texts := {
	"clean": {"id": "message", "secret": false, "path": false, "trace": false, "plain": true},
	"secret": {"id": "message", "secret": true, "path": false, "trace": false, "plain": true},
	"path": {"id": "message", "secret": false, "path": true, "trace": false, "plain": true},
	"trace": {"id": "message", "secret": false, "path": false, "trace": true, "plain": true},
	"trace unknown": {"id": "message", "secret": false, "path": false, "plain": true},
	"not plain": {"id": "message", "secret": false, "path": false, "trace": false, "plain": false},
	"plain unknown": {"id": "message", "secret": false, "path": false, "trace": false},
	"secret unknown": {"id": "message", "path": false, "trace": false, "plain": true},
	"path unknown": {"id": "message", "secret": false, "trace": false, "plain": true},
	"secret is null": {"id": "message", "secret": null, "path": false, "trace": false, "plain": true},
	"nothing": {},
}

test_detail_safe if {
	held := {name | some name, text in _texts; error.detail_safe(text)}
	held == {"clean"}
}

_shown := {
	"validation": {"error": {"kind": "validation"}, "error_mode": "safe"},
	"debug": {"error": {"kind": "other"}, "error_mode": "debug"},
	"not shown": {"error": {"kind": "other"}, "error_mode": "safe"},
	"no kind": {"error": {}, "error_mode": "safe"},
	"no mode": {"error": {"kind": "other"}},
	"nothing": {},
}

test_message_safe if {
	held := {[how, name] |
		some how, request in _shown
		some name, text in _texts
		error.message_safe(text) with input as request
	}
	clean := {[how, "clean"] | some how, _ in _shown}
	named := {["debug", "path"], ["debug", "path unknown"]}
	unseen := {["not shown", name] | some name, text in _texts; text.id == "message"}
	held == (clean | named) | unseen
}
