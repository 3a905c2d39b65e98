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
}

test_executable_allowlisted if {
	held := {name |
		some name, one in _commands
		command.executable_allowlisted with input as {"command": one} with data.policy as _policy
	}
	held == {"none", "listed"}
	not command.executable_allowlisted with input as {} with data.policy as _policy
	not command.executable_allowlisted with input as {"command": _cat} with data.policy as {}
}
