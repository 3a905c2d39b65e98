package admission.lib.tool_call_test

import data.admission.lib.tool_call
import future.keywords.not

_lookup := {
	"ranges": [], "host_paths": [], "path_patterns": [],
	"tools": {"web": {"selectors": ["web"], "values": {}}, "shell": {"selectors": ["shell"], "values": {}}},
	"policies": {"p": {
		"deny": {
			"size": 3,
			"names": ["s/never", "s/no_keys", "s/no_pem"],
			"conditional": {},
			"selectors": {
				"web": {"host https://x.example.com": 0, "/work/keys/": 0},
				"shell": {"/work/keys/": 1, "{cwd}/.env": 1, "path **/*.pem": 2, "path {cwd}/docs/*.md": 2},
			},
		},
		"confirm": {"size": 1, "names": ["s/ask"], "conditional": {}, "selectors": {"web": {"/work/drafts/": 0}}},
		"allow": {
			"size": 4,
			"names": ["s/web", "s/shell", "s/echo", "s/named"],
			"covers": [
				{"any host": true, "/work/": true},
				{"host https://a.example.com": true, "/work/lists/": true, "command 1 ls": true},
				{"command 1 echo": true},
				{},
			],
			"selectors": {
				"web": {
					"by name": {"rules": [3], "size": 1},
					"any host": {"rules": [0], "size": 1},
					"/work/": {"rules": [0], "size": 1},
				},
				"shell": {
					"host https://a.example.com": {"rules": [1], "size": 1},
					"/work/lists/": {"rules": [1], "size": 1},
					"command 1 ls": {"rules": [1], "size": 1},
					"command 1 echo": {"rules": [2], "size": 1},
				},
			},
		},
	}},
}

_policy := {
	"tool_lookup": _lookup,
	"addresses": {"local_names": ["localhost"]},
	"tools": {
		"tools": {"web": {"side_effects": ["network"]}, "shell": {"side_effects": ["execute"]}},
		"policies": {"p": {"base": "confirm_all", "principals": ["agent"]}},
	},
}

_hosts(names) := [{"id": name, "canonical": true, "origin": $"https://{name}.example.com"} | some name in names]

_paths(paths) := [{"id": path, "canonical": true, "path": path} | some path in paths]

_commands(commands) := [command |
	some words in commands
	facts := {"canonical": true, "words": words, "short": [], "parts": 0, "patterns": [], "touches": []}
	command := object.union(facts, {"id": concat(" ", words)})
]

_call(tool, hosts, paths, commands) := {
	"now": 100,
	"context": {"policy": "p", "cwd": "/work"},
	"caller": {"principal": "agent"},
	"call": {"tool": tool, "touches": [], "unplaced": false},
	"destinations": _hosts(hosts),
	"paths": _paths(paths),
	"commands": _commands(commands),
	"command_parts": [],
	"values": [],
	"prefixes": [_prefix_facts],
}

_prefix_facts := {
	"id": "p1", "tool": "shell", "principal": "agent", "cwd": "/work", "words": ["git"], "approver": "ana",
	"expires_at": 200, "revoked": false,
}

_calls := {
	"free": _call("web", [], [], []),
	"no command": _call("shell", [], [], []),
	"any host": _call("web", ["a", "b"], ["/work/a"], []),
	"some host refused": _call("web", ["a", "x"], ["/work/drafts/a"], []),
	"some path asked": _call("web", ["a"], ["/work/a", "/WORK/Drafts/a"], []),
	"some path not covered": _call("web", ["a"], ["/work/a", "/tmp/a"], []),
	"command": _call("shell", [], [], [["ls", "-l"]]),
	"command with host": _call("shell", ["a"], [], [["ls"]]),
	"command with another host": _call("shell", ["b"], [], [["ls"]]),
	"approved": _call("shell", [], [], [["git", "log"]]),
	"approved with host": _call("shell", ["a"], [], [["git", "log"]]),
	"approved with another host": _call("shell", ["b"], [], [["git", "log"]]),
	"a word that an approved beginning names": _with_word("git", 0),
	"a word behind an approved beginning": _with_word("git", 1),
	"a word that a rule names": _with_word("ls", 0),
	"a word behind those that a rule names": _with_word("ls", 1),
	"text that means a refused path": _touching("/work/keys/a"),
	"text that means a path": _touching("/work/a"),
	"approved with path": _call("shell", [], ["/work/a"], [["git", "log"]]),
	"two commands": _call("shell", [], [], [["ls", "a"], ["ls", "b"]]),
	"a command and an approved one": _call("shell", ["a"], [], [["ls", "a"], ["git", "log"]]),
	"one command of two": _call("shell", [], [], [["ls", "a"], ["rm"]]),
	"a host of one command": _placed("ls", "destinations", _hosts(["b"])),
	"a host of a command that a rule covers": _placed("ls", "destinations", _hosts(["a"])),
	"a host of a command that is not there": _placed("cat", "destinations", _hosts(["a"])),
	"a path of a command that is not there": _placed("cat", "paths", _paths(["/work/a"])),
	"a pattern that may be a refused path": _with_pattern("/work/K*"),
	"a pattern that is no refused path": _with_pattern("/work/x*.py"),
	"a pattern of hidden files": _with_pattern("/work/.e*"),
	"a pattern that matches no hidden file": _with_pattern("/work/*nv"),
	"a pattern that may be that of a rule": _with_pattern("/work/a/*.p?m"),
	"a pattern that may be that of a rule below the working folder": _with_pattern("/work/docs/a*"),
	"a pattern that is never that of a rule": _with_pattern("/work/a/*.py"),
	"a host of one command whose rule covers it": _placed_of("ls", "destinations", _hosts(["a"])),
	"a host of another command": _placed_of("echo", "destinations", _hosts(["a"])),
	"a path of one command whose rule covers it": _placed_of("ls", "paths", _paths(["/work/lists/a"])),
	"a path of another command": _placed_of("echo", "paths", _paths(["/work/lists/a"])),
	"two commands of one name": _call("shell", [], [], [["ls"], ["ls"]]),
	"approved, and a rule names it": _approved("ls"),
	"another command": _call("shell", [], [], [["rm"]]),
	"unknown tool": _call("other", [], [], []),
}

# Two commands, `ls` and `git`, and what was found in one.
_placed(program, list, found) := _found_in(["ls", "git"], program, list, found)

# The same with `ls` and `echo`, each of which has a rule of its own.
_placed_of(program, list, found) := _found_in(["ls", "echo"], program, list, found)

_found_in(programs, program, list, found) := object.union(
	_call("shell", [], [], [[one] | some one in programs]),
	{list: [object.union(one, {"command": program}) | some one in found]},
)

_approved(program) := object.union(
	_call("shell", [], [], [[program]]),
	{"prefixes": [object.union(_prefix_facts, {"words": [program]})]},
)

_with_pattern(pattern) := object.union(
	_call("shell", [], [], []),
	{"commands": [object.union(_commands([["ls"]])[0], {"patterns": [pattern]})]},
)

_with_word(program, index) := object.union(_call("shell", [], [], [[program, "x"]]), {"destinations": [{
	"id": "w",
	"canonical": false,
	"word": {"command": concat(" ", [program, "x"]), "index": index, "label": true, "remote": false},
}]})

# regal ignore:line-length
_touching(path) := object.union(_call("web", [], [], []), {"call": {"tool": "web", "touches": [path], "unplaced": false}})

_allow(rule) := {"section": "allow", "rule": rule, "basis": "rule"}

_both := {"section": "allow", "rule": "prefix:p1, s/shell", "basis": "argument_text_prefix"}

_prefix := {"section": "allow", "rule": "prefix:p1", "basis": "argument_text_prefix"}

_decided := {
	"free": _allow("s/named"),
	"any host": _allow("s/web"),
	"some host refused": {"section": "deny", "rule": "s/never"},
	"some path asked": {"section": "confirm", "rule": "s/ask"},
	"command": _allow("s/shell"),
	"command with host": _allow("s/shell"),
	"approved": _prefix,
	"approved with host": _prefix,
	"a word that an approved beginning names": _prefix,
	"two commands": _allow("s/shell"),
	"a command and an approved one": _both,
	"a host of a command that a rule covers": _both,
	"a host of one command whose rule covers it": _allow("s/echo, s/shell"),
	"a path of one command whose rule covers it": _allow("s/echo, s/shell"),
	"approved, and a rule names it": _allow("s/shell"),
	"a pattern that may be a refused path": {"section": "deny", "rule": "s/no_keys"},
	"a pattern that is no refused path": _allow("s/shell"),
	"a pattern of hidden files": {"section": "deny", "rule": "s/no_keys"},
	"a pattern that matches no hidden file": _allow("s/shell"),
	"a pattern that may be that of a rule": {"section": "deny", "rule": "s/no_pem"},
	"a pattern that may be that of a rule below the working folder": {"section": "deny", "rule": "s/no_pem"},
	"a pattern that is never that of a rule": _allow("s/shell"),
	"a word that a rule names": _allow("s/shell"),
	"text that means a refused path": {"section": "deny", "rule": "s/never"},
	"text that means a path": _allow("s/named"),
}

test_decided if {
	every name, call in object.filter(_calls, object.keys(_decided)) {
		tool_call.decided == _decided[name] with input as call with data.policy as _policy
	}
}

test_rules_about_changes_pass_a_command_that_keeps_its_files if {
	rows := {"ls": {"keeps": true, "operands": "any"}, "echo": {"operands": "any"}}
	keeping := object.union(_policy, {"program_rows": rows})
	named := _placed_of("ls", "paths", _paths(["/work/keys/a"]))
	every call in [named, _calls["a pattern that may be a refused path"], _calls["a pattern of hidden files"]] {
		1 in tool_call.denying with input as call with data.policy as _policy
		tool_call.denying == set() with input as call with data.policy as keeping
	}
}

test_undecided if {
	every call in object.remove(_calls, object.keys(_decided)) {
		not tool_call.decided with input as call with data.policy as _policy
	}
}

test_what_is_not_canonical_is_not_allowed if {
	every list in ["destinations", "paths", "commands"] {
		call := object.union(_calls.free, {list: [{"id": "x", "canonical": false}]})
		not tool_call.decided with input as call with data.policy as _policy
		not tool_call.admitting with input as call with data.policy as _policy
	}
}

test_lists_missing if {
	every list in ["destinations", "paths", "commands", "values"] {
		every call in [json.remove(_calls.free, [list]), object.union(_calls.free, {list: null})] {
			not tool_call.decided with input as call with data.policy as _policy
			not tool_call.denying with input as call with data.policy as _policy
			not tool_call.portions with input as call with data.policy as _policy
		}
	}
	every call in [{"tool": "web"}, {"tool": "web", "touches": null}] {
		untouched := object.union(object.remove(_calls.free, ["call"]), {"call": call})
		not tool_call.denying with input as untouched with data.policy as _policy
		not tool_call.decided with input as untouched with data.policy as _policy
	}
}

test_values_that_are_not_whole_leave_nothing_decided if {
	every value in [{"name": "a"}, {"present": false}, {}] {
		not tool_call.decided with input as object.union(_calls.free, {"values": [value]}) with data.policy as _policy
	}
}

test_a_command_without_an_id_leaves_nothing_decided if {
	commands := [object.remove(command, ["id"]) | some command in _calls.command.commands]
	call := object.union(_calls.command, {"commands": commands})
	not tool_call.denying with input as call with data.policy as _policy
}

test_another_principal if {
	call := object.union(_calls.free, {"caller": {"principal": "other"}})
	not tool_call.admitting with input as call with data.policy as _policy
	not tool_call.decided with input as call with data.policy as _policy
}

test_a_hidden_tool_has_no_approved_prefix if {
	hidden := json.patch(_policy, [{"op": "replace", "path": "tools/policies/p/base", "value": "deny_all"}])
	not tool_call.admitting with input as _calls.approved with data.policy as hidden
}

test_a_section_that_cannot_be_looked_at_leaves_nothing_decided if {
	every section in ["deny", "confirm"] {
		every name in ["free", "some path asked", "command", "approved"] {
			# regal ignore:non-loop-expression
			policy := json.remove(_policy, [concat("/", ["tool_lookup/policies/p", section])])
			not tool_call.decided with input as _calls[name] with data.policy as policy
		}
	}
}

test_lists_that_are_none_hold_nothing if {
	every list in ["destinations", "paths", "commands", "values"] {
		call := object.union(_calls.free, {list: {}})
		not tool_call.portions with input as call with data.policy as _policy
		not tool_call.denying with input as call with data.policy as _policy
	}
}

test_values_missing if {
	every lost in [
		"tool_lookup", "tool_lookup/policies/p", "tool_lookup/policies/p/deny", "tool_lookup/policies/p/confirm",
		"tool_lookup/policies/p/deny/size", "tool_lookup/policies/p/confirm/size", "tool_lookup/policies/p/allow/names",
		"tool_lookup/path_patterns", "tool_lookup/host_paths", "tool_lookup/ranges", "tool_lookup/tools/web",
		"tools/policies/p", "tools/policies/p/principals",
	] {
		not tool_call.decided with input as _calls.free with data.policy as json.remove(_policy, [lost])
	}
}

test_an_approved_beginning_allows_no_values_of_arguments if {
	values := {"a": {"value a any": []}}
	policy := json.patch(_policy, [{"op": "replace", "path": "tool_lookup/tools/shell/values", "value": values}])
	not tool_call.admitting with input as _calls.approved with data.policy as policy
}

test_admitted_commands if {
	admitted := tool_call.admitted_commands with input as _calls["one command of two"] with data.policy as _policy
	admitted == {"ls a"}
}
