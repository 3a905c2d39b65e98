package admission.lib.tool_commands_test

import data.admission.lib.tool_commands as commands
import future.keywords.not

_policy := {
	"program_rows": {
		"sort": {
			"any_words": false,
			"none": ["-r", "-k"], "read": [], "write": ["-o"], "connect": [], "execute": ["--compress-program", "-k"],
		},
		"echo": {"any_words": true, "none": ["-n"], "write": ["-w"]},
		"sed": {"script_options": ["-e"], "scripts": ["^[0-9]+p$"]},
	},
	"commands": {"variables": ["CI"], "syntax": ["pipe"]},
}

# A part, and what it can do.
_parts := [
	[{"kind": "option", "name": "-r", "program": "sort"}, {"none"}],
	[{"kind": "option", "name": "-o", "program": "sort"}, {"write"}],
	[{"kind": "option", "name": "-k", "program": "sort"}, {"none", "execute"}],
	[{"kind": "option", "name": "-x", "program": "sort"}, {"unknown"}],
	[{"kind": "option", "name": "-r", "program": "other"}, {"unknown"}],
	[{"kind": "option", "name": "-r"}, {"unknown"}],
	[{"kind": "option", "program": "sort"}, {"unknown"}],
	[{"kind": "option", "name": "-e", "program": "sed"}, {"none"}],
	[{"kind": "option", "name": "--- x ---", "program": "echo"}, {"none"}],
	[{"kind": "option", "name": "-w", "program": "echo"}, {"none", "write"}],
	[{"kind": "option", "name": null, "program": "echo"}, {"unknown"}],
	[{"kind": "option", "program": "echo"}, {"unknown"}],
	[{"kind": "variable", "name": "CI"}, {"none"}],
	[{"kind": "variable", "name": "PATH"}, {"unknown"}],
	[{"kind": "syntax", "name": "pipe"}, {"none"}],
	[{"kind": "syntax", "name": "function"}, {"unknown"}],
	[{"kind": "redirect", "name": "write"}, {"redirect"}],
	[{"kind": "word", "program": "echo"}, {"none"}],
	[{"kind": "word", "program": "sort"}, {"unknown"}],
	[{"kind": "word"}, {"unknown"}],
	[{"kind": "pattern", "program": "echo"}, {"none"}],
	[{"kind": "pattern", "program": "sort"}, {"none", "write", "execute"}],
	[{"kind": "pattern", "program": "other"}, {"unknown"}],
	[{"kind": "script", "program": "sed", "text": "10p"}, {"none"}],
	[{"kind": "script", "program": "sed", "text": "1e x"}, {"unknown"}],
	[{"kind": "script", "program": "sed"}, {"unknown"}],
	[{"kind": "script", "program": "awk", "text": "10p"}, {"unknown"}],
	[{"kind": "subcommand", "name": "subcommand", "program": "sort"}, {"unknown"}],
	[{"kind": "code", "name": "eval"}, {"unknown"}],
	[{"kind": "code", "name": "CI"}, {"unknown"}],
	[{"kind": "code", "program": "echo"}, {"unknown"}],
	[{"kind": "code", "program": "sed", "text": "10p"}, {"unknown"}],
	[{"kind": "pipe", "name": "pipe"}, {"unknown"}],
	[{}, {"unknown"}],
	[null, {"unknown"}],
]

test_abilities if {
	every row in _parts {
		commands.abilities(row[0]) == row[1] with data.policy as _policy
	}
	every row in _parts {
		_unknown_without_values(row[0])
	}
}

_unknown_without_values(part) if part.kind == "redirect"

# regal ignore:with-outside-test-context
_unknown_without_values(part) if commands.abilities(part) == {"unknown"} with data.policy as {}

_command := {"id": "c", "parts": 3}

_request := {"command_parts": [
	{"command": "c", "kind": "option", "name": "-o", "program": "sort", "index": 2},
	{"command": "c", "kind": "syntax", "name": "pipe", "index": 0},
	{"command": "c", "kind": "redirect", "name": "write", "index": 0},
	{"command": "d", "kind": "word", "index": 0},
]}

# An option that goes on to hosts which the command does not name.
_followed := {"curl": {"any_words": false, "none": ["-s"], "follow": ["-L"], "connect": []}}

_option := {"kind": "option", "name": "-L", "program": "curl"}

_judged := {"program_rows": _followed, "tools": {"tools": {"t": {"hosts_in_commands": "judged"}}}}

_enforced := {"program_rows": _followed, "tools": {"tools": {"t": {"hosts_in_commands": "enforced"}}}}

test_options_that_follow_answers if {
	call := {"call": {"tool": "t"}}
	commands.abilities(_option) == {"connect"} with input as call with data.policy as _judged
	commands.abilities(_option) == {"none"} with input as call with data.policy as _enforced
	commands.abilities(_option) == {"connect"} with input as call with data.policy.program_rows as _followed
	commands.abilities(_option) == {"connect"} with input as {} with data.policy as _enforced
	other := object.union(_option, {"name": "-x"})
	commands.abilities(other) == {"unknown"} with input as call with data.policy as _enforced
	pattern := {"kind": "pattern", "program": "curl"}
	commands.abilities(pattern) == {"none", "connect"} with input as call with data.policy as _judged
}

test_beyond if {
	commands.beyond(_command, 1) == {"write", "redirect"} with input as _request with data.policy as _policy
	commands.beyond(_command, 2) == {"write", "redirect"} with input as _request with data.policy as _policy
	commands.beyond(_command, 3) == {"redirect"} with input as _request with data.policy as _policy
	commands.beyond({"id": "e", "parts": 0}, 1) == set() with input as _request with data.policy as _policy
}

test_beyond_is_not_known_when_parts_are_missing if {
	every lost in ["command_parts/0", "command_parts/0/command", "command_parts/0/index", "command_parts"] {
		less := json.remove(_request, [lost])
		not commands.beyond(_command, 1) with input as less with data.policy as _policy
	}
	every command in [{"id": "c"}, {"id": "c", "parts": null}, {"parts": 3}, {"id": "c", "parts": 2}] {
		not commands.beyond(command, 1) with input as _request with data.policy as _policy
	}
	null_length := commands.beyond(_command, null) with input as _request with data.policy as _policy
	null_length == {"redirect"}
}

test_options if {
	commands.options(_command) == {"-o"} with input as _request with data.policy as _policy
	every part in [
		{"kind": "option", "name": "-x", "program": "sort"}, {"kind": "option", "program": "sort"},
		{"kind": "option", "name": null, "program": "sort"}, {"kind": "word"}, {"kind": "pattern"}, {"kind": "subcommand"},
	] {
		request := {"command_parts": [object.union(part, {"command": "c"})]}
		"?" in commands.options(_command) with input as request with data.policy as _policy
	}
}

# Commands with an option each, by id, and whether they keep the files that they name.
_keeping := {
	"by option": [["cat", "a"], [], ["cat", "-n"], true],
	"reading others": [["cat", "a"], [], ["cat", "-f"], true],
	"writing": [["cat", "a"], [], ["cat", "-o"], false],
	"starting another": [["cat", "a"], [], ["cat", "-exec"], false],
	"by subcommand": [["git", "log"], [], ["git log", "-n"], true],
	"behind options": [["git", "-p", "log"], ["git", "log"], ["git log", "-n"], true],
	"another subcommand": [["git", "rm"], [], ["git log", "-n"], false],
	"by path": [["/bin/cat"], [], ["cat", "-n"], false],
}

_input_keeping := {
	"commands": [{"id": id, "words": row[0], "short": row[1], "parts": 1} | some id, row in _keeping],
	"command_parts": [part |
		some id, row in _keeping
		part := {"command": id, "kind": "option", "index": 1, "program": row[2][0], "name": row[2][1]}
	],
}

_rows_keeping := {"program_rows": {
	"cat": {"keeps": true, "operands": "any", "none": ["-n"], "read": ["-f"], "write": ["-o"], "runs_until": ["-exec"]},
	"/bin/cat": {"keeps": false, "operands": "any"},
	"git": {"keeps": false, "operands": "subcommand"},
	"git log": {"keeps": true, "none": ["-n"]},
	"git rm": {"keeps": false, "none": ["-n"]},
}}

test_commands_that_keep_the_files_that_they_name if {
	expected := {id | some id, row in _keeping; row[3]}
	commands.kept == expected with input as _input_keeping with data.policy as _rows_keeping
}

# Parts of a command, and whether it is shown to show nothing of the files that it names.
_unread := [
	[[{"kind": "option", "name": "-l"}], true],
	[[{"kind": "option", "name": "-f"}], false],
	[[{"kind": "option", "name": "-x"}], false],
	[[{"kind": "syntax", "name": "and"}], true],
	[[{"kind": "syntax", "name": "pipe"}], false],
	[[{"kind": "syntax"}], false],
	[[{"kind": "word", "command": "other"}], false],
	[[{"kind": "syntax", "name": "function", "command": "other"}], false],
]

_rows_unread := {
	"program_rows": {
		"ls": {"unread": true, "operands": "any", "none": ["-l"], "read": ["-f"]},
		"cat": {"operands": "any"},
	},
	"commands": {"variables": [], "syntax": ["and", "pipe"]},
}

test_commands_that_show_nothing_of_files if {
	every row in _unread {
		parts := [object.union({"command": "a", "program": "ls", "index": 0}, part) | some part in row[0]]
		own := count([part | some part in parts; part.command == "a"])
		listed := [
			{"id": "a", "words": ["ls", "x"], "short": [], "parts": own}, {"id": "b", "words": ["cat"], "short": [], "parts": 0},
		]
		found := commands.unread with input as {"commands": listed, "command_parts": parts} with data.policy as _rows_unread
		found == {"a" | row[1]}

		# regal ignore:with-outside-test-context
		commands.unread == set() with input as {"commands": listed, "command_parts": parts} with data.policy as {}
	}
}

test_kind if {
	every row in [[[], []], [["a"], []], [[], ["a"]], [["a"], ["a"]]] {
		found := commands.kind("a") with commands.unread as {id | some id in row[0]}
			with commands.kept as {id | some id in row[1]}
		found == concat("", array.concat(["unread " | some _ in row[0]], ["kept " | some _ in row[1]]))
	}
	commands.kind(null) == "" with input as {} with data.policy as {}
}

test_none_keep_them_beside_what_no_value_describes if {
	odd := {"half": {"keeps": false}, "null": {"keeps": false, "operands": null}}
	rows := {"program_rows": object.union(_rows_keeping.program_rows, odd)}
	every words in [null, ["frob"], ["half"], ["null"]] {
		other := {"id": "other", "words": words, "short": [], "parts": 0}
		beside := object.union(_input_keeping, {"commands": array.concat(_input_keeping.commands, [other])})

		# regal ignore:with-outside-test-context
		commands.kept == set() with input as beside with data.policy as rows
	}
}

test_none_keep_them_without_parts_or_values if {
	commands.kept == set() with input as _input_keeping with data.policy as {"program_rows": {}}
	lost := object.union(_input_keeping, {"command_parts": []})
	commands.kept == set() with input as lost with data.policy as _rows_keeping
}

# The parts of a shell beside `cat`, and whether `cat` still keeps its files.
_beside := [
	[[], false],
	[[{"command": "s", "kind": "option", "name": "-c", "program": "sh", "index": 1}], true],
	[[{"command": "s", "kind": "option", "name": "-x", "program": "sh", "index": 1}], false],
	[[{"command": "c", "kind": "option", "name": "-c", "program": "cat", "index": 1}], false],
	[
		[
			{"command": "s", "kind": "option", "name": "-c", "program": "sh", "index": 1},
			{"command": "s", "kind": "word", "name": "substitution", "index": 2},
		],
		false,
	],
]

test_a_shell_may_carry_out_what_others_print if {
	rows := {
		"cat": {"keeps": true, "operands": "any", "none": ["-c"]},
		"sh": {"operands": "shell", "shell": ["-c"], "keeps": false},
	}
	found := [keeps |
		some row in _beside
		commands_beside := [
			{"id": "c", "words": ["cat", "a"], "short": [], "parts": count([1 | row[0][_].command == "c"])},
			{"id": "s", "words": ["sh"], "short": [], "parts": count([1 | row[0][_].command == "s"])},
		]
		ids := commands.kept with input as {"commands": commands_beside, "command_parts": row[0]}
			with data.policy as {"program_rows": rows}
		keeps := count(ids) == 1
	]
	found == [row[1] | some row in _beside]
}
