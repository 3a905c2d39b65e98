package admission.requirements.tool_call.command_test

import data.admission.requirements.tool_call.command
import future.keywords.not

_policy := {
	"program_rows": {"ls": {"none": ["-l"]}},
	"tool_lookup": {
		"tools": {"shell": {"selectors": ["shell"], "values": {}}},
		"ranges": [],
		"host_paths": [],
		"path_patterns": [],
		"policies": {"p": {
			"deny": {"size": 0, "names": [], "conditional": {}, "selectors": {}},
			"confirm": {"size": 0, "names": [], "conditional": {}, "selectors": {}},
			"allow": {
				"size": 1,
				"names": ["s/ls"],
				"covers": [{"command+unknown 1 ls": true}],
				"selectors": {"shell": {"command+unknown 1 ls": {"rules": [0], "size": 1}}},
			},
		}},
	},
	"tools": {
		"tools": {"shell": {"side_effects": ["execute"]}},
		"policies": {"p": {"base": "confirm_all", "principals": "any"}},
	},
}

_part(name) := {"id": "p", "command": "c", "kind": "option", "name": name, "program": "ls", "index": 1}

_request(words, name) := {
	"context": {"policy": "p", "cwd": "/work"},
	"call": {"tool": "shell", "touches": [], "unplaced": false},
	"destinations": [],
	"paths": [],
	"values": [],
	"commands": [{
		"id": "c", "canonical": true, "words": words, "short": [], "parts": 1, "patterns": [], "touches": [],
	}],
	"command_parts": [_part(name)],
}

test_permitted if {
	command.part_permitted(_part("-l")) with input as _request(["rm"], "-l") with data.policy as _policy
	command.part_permitted(_part("-x")) with input as _request(["ls"], "-x") with data.policy as _policy
}

test_not_permitted if {
	not command.part_permitted(_part("-x")) with input as _request(["rm"], "-x") with data.policy as _policy
	not command.part_permitted(_part("-x")) with input as _request(["ls"], "-x") with data.policy as {}
	not command.part_permitted(_part("-l")) with input as _request(["ls"], "-l") with data.policy as {}
	every lost in ["kind", "name", "program"] {
		part := object.remove(_part("-l"), [lost])
		not command.part_permitted(part) with input as _request(["rm"], "-l") with data.policy as _policy
	}
}
