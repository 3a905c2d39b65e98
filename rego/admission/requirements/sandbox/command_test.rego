package admission.requirements.sandbox.command_test

import data.admission.requirements.sandbox.command
import future.keywords.not

_policy := {"sandbox": {"executables": {"cat": "/usr/bin/cat", "nul": null}}}

_cat := {"stated": true, "executable": "cat", "words": 2, "digest": "d"}

_commands := {
	"none": {"stated": false},
	"listed": _cat,
	"not listed": object.union(_cat, {"executable": "sh"}),
	"by path": object.union(_cat, {"executable": "/usr/bin/cat"}),
	"no path": object.union(_cat, {"executable": "nul"}),
	"no digest": json.remove(_cat, ["digest"]),
	"null": object.union(_cat, {"executable": null}),
	"not said": json.remove(_cat, ["stated"]),
	"nothing": {},
	"text": {"stated": true, "text": true, "digest": "d"},
}

test_executable_allowlisted if {
	held := {name |
		some name, one in _commands
		command.executable_allowlisted with input as {"command": one} with data.policy as _policy
	}
	held == {"none", "listed", "text"}
	not command.executable_allowlisted with input as {} with data.policy as _policy
	not command.executable_allowlisted with input as {"command": _cat} with data.policy as {}
}

test_shell_permitted if {
	policy := {"sandbox": {"shells": {"here": "/usr/bin/sh", "nul": null}}}
	text := {"stated": true, "text": true, "digest": "d"}
	held := {[profile, name] |
		some profile in ["here", "nul", "nowhere", null]
		some name, one in {
			"text": text, "none": {"text": false}, "not said": {"digest": "d"}, "null": {"text": null, "digest": "d"},
			"no digest": {"text": true},
		}
		command.shell_permitted with input as {"profile": profile, "command": one} with data.policy as policy
	}
	held == {["here", "text"], ["here", "none"], ["nul", "none"], ["nowhere", "none"], [null, "none"]}
	not command.shell_permitted with input as {} with data.policy as policy
	not command.shell_permitted with input as {"profile": "here", "command": text} with data.policy as {}
}
