package admission.lib.tool_words_test

import data.admission.lib.tool_words
import future.keywords.not

_policy := {"tool_lookup": {"words_without_hosts": {
	"all": {"command 1 cat": true, "command 2 git log": true},
	"plain": {"command 1 tar": true},
	"next": {"command 1 sh": true},
}}}

_hosts := {
	"tool_lookup": {"ranges": [], "host_paths": [], "path_patterns": []},
	"addresses": {"local_names": ["localhost"]},
}

_forms(host) := {"any host", concat("", ["host https://", host]), concat("", ["host https://", host, ":*"])} | {form |
	some form in [_domain(host), concat("", [_domain(host), ":*"])]
}

_domain(host) := concat("", ["host https://*.", substring(host, indexof(host, ".") + 1, -1)])

_command(words) := {"id": "c", "canonical": true, "words": words}

_word(index, remote) := {
	"id": "d", "canonical": true, "origin": "https://a.pl",
	"word": {"command": "c", "index": index, "label": false, "remote": remote},
}

_label(index) := {
	"id": "l", "canonical": false,
	"word": {"command": "c", "index": index, "label": true, "remote": false},
}

_host := {"id": "h", "canonical": true, "origin": "https://h.example.com"}

# Words of a command, which of them is meant, whether it is remote, and whether a value says that it is no host.
_words := [
	[["cat", "x", "a.pl"], 2, true, true],
	[["git", "log", "a.pl"], 2, false, true],
	[["git", "clone", "a.pl"], 2, false, false],
	[["git", "a.pl"], 1, false, false],
	[["tar", "xf", "a.pl"], 2, false, true],
	[["tar", "xf", "a.pl:x"], 2, true, false],
	[["sh", "a.pl"], 1, false, true],
	[["sh", "a.sh", "a.pl"], 2, false, false],
	[["/bin/cat", "a.pl"], 1, false, false],
	[["curl", "a.pl"], 1, false, false],
]

test_no_host if {
	every row in _words {
		request := {"destinations": [_word(row[1], row[2])], "commands": [_command(row[0])]}
		counted := tool_words.hosts with input as request with data.policy as _policy
		expected := {true: [], false: request.destinations}
		counted == expected[row[3]]
	}
}

test_facts_and_values_missing if {
	one := _word(1, false)
	held := {"commands": [_command(["cat", "a.pl"])]}
	tool_words.no_host(one) with input as held with data.policy as _policy
	not tool_words.no_host(one) with input as held with data.policy as {}
	not tool_words.no_host(_host) with input as held with data.policy as _policy
	not tool_words.no_host(json.remove(one, ["word/command"])) with input as held with data.policy as _policy
	every lost in ["id", "words", "canonical"] {
		less := {"commands": [json.remove(_command(["cat", "a.pl"]), [lost])]}
		not tool_words.no_host(one) with input as less with data.policy as _policy
	}
	every lost in ["word/index", "word/remote"] {
		# regal ignore:non-loop-expression
		less := {"commands": [_command(["sh", "tar", "a.pl"])]}
		not tool_words.no_host(json.remove(_word(1, false), [lost])) with input as less with data.policy as {}
	}
	not tool_words.hosts with input as {"destinations": {"a": _host}}
}

test_allowed if {
	held := {"commands": [_command(["ssh", "a.pl", "x"])]}
	found := {name: allowed |
		some name, destination in {
			"host": _host,
			"word": _word(1, false),
			"label": _label(2),
			"label behind": _label(20),
			"not said to be a label": json.remove(_word(1, false), ["word/label"]),
		}
		allowed := tool_words.allowed(destination) with input as held with data.policy as _hosts
	}
	found == {
		"host": (_forms("h.example.com") | {"host https://*.com", "host https://*.com:*"}),
		"word": (_forms("a.pl") | {"command 2 ssh a.pl", "command 3 ssh a.pl x"}),
		"label": {"any host", "command 3 ssh a.pl x"},
		"label behind": {"any host"},
		"not said to be a label": _forms("a.pl"),
	}
	tool_words.allowed(_word(1, false)) == _forms("a.pl") with input as {"commands": []} with data.policy as _hosts
	not tool_words.allowed(_label(1)) with input as {"commands": []}
	not tool_words.allowed(json.remove(_label(1), ["word/label"])) with input as held
}

test_refused if {
	every one in [_host, _word(1, false)] {
		found := tool_words.refused(one) with data.policy as _hosts
		count({"any host", concat(" ", ["host", one.origin])} - found) == 0
	}
	tool_words.refused(_label(1)) == {"any host"}
	not tool_words.refused({"id": "x", "canonical": false})
}

test_to_cover if {
	found := {"id": "f", "canonical": true, "origin": "https://a.example.org", "command": "c"}
	request := {"call": {"tool": "t"}, "destinations": [found, _host], "commands": []}
	every tool, expected in {"enforced": [_host], "judged": [found, _host], null: [found, _host]} {
		policy := {"tools": {"tools": {"t": {"hosts_in_commands": tool}}}}
		tool_words.to_cover == expected with input as request with data.policy as policy
	}
	tool_words.to_cover == [found, _host] with input as request with data.policy as {}
	not tool_words.to_cover with input as {"call": {"tool": "t"}} with data.policy as {}
	enforced := {"tools": {"tools": {"t": {"hosts_in_commands": "enforced"}}}}
	not tool_words.enforced(_host) with input as request with data.policy as enforced
	not tool_words.enforced(found) with input as {} with data.policy as enforced
}

# A path and an address in a script count unless one pattern matches all of the script.
test_in_a_script if {
	script := {"command": "c", "kind": "script", "name": "script", "program": "sed", "index": 2, "text": "/x/p"}
	path := {"id": "p", "canonical": true, "path": "/x/p", "command": "c", "place": 2}
	policy := {"program_rows": {"sed": {"scripts": ["^/[a-z]*/p$"]}}}
	request := {"paths": [path], "destinations": [path], "command_parts": [script], "commands": []}
	tool_words.paths == [] with input as request with data.policy as policy
	tool_words.hosts == [] with input as request with data.policy as policy
	tool_words.paths == [path] with input as request with data.policy as {}
	every odd in [
		json.patch(script, [{"op": "replace", "path": "/index", "value": 1}]),
		json.patch(script, [{"op": "replace", "path": "/command", "value": "d"}]),
		json.patch(script, [{"op": "replace", "path": "/kind", "value": "word"}]),
		json.patch(script, [{"op": "replace", "path": "/text", "value": "/x/w"}]),
		json.remove(script, ["text"]),
		json.remove(script, ["index"]),
		json.remove(script, ["command"]),
		json.remove(script, ["program"]),
	] {
		# regal ignore:with-outside-test-context
		tool_words.paths == [path] with input as object.union(request, {"command_parts": [odd]}) with data.policy as policy
	}
	word := object.union(request, {"command_parts": [object.union(script, {"kind": "word"})]})
	harmless := {"program_rows": {"sed": {"any_words": true}}}
	tool_words.paths == [path] with input as word with data.policy as harmless
	every lost in ["place", "command"] {
		not tool_words.no_path(json.remove(path, [lost])) with input as request with data.policy as policy
	}
	not tool_words.paths with input as {"paths": {"a": path}}
}

# What seems to be a path in a script that a rule has to permit, or in a word that is only printed.
test_a_path_that_no_rule_can_cover if {
	path := {"id": "p", "canonical": false, "command": "c", "place": 1}
	script := {"command": "c", "kind": "script", "name": "script", "program": "awk", "index": 1, "text": "/x/ {f()}"}
	in_script := {"paths": [path], "command_parts": [script], "commands": []}
	tool_words.no_name(path) with input as in_script with data.policy as {}
	tool_words.paths == [path] with input as in_script with data.policy as {}

	command := {"id": "c", "canonical": true, "words": ["echo", "see ../x"]}
	printed := {"paths": [path], "command_parts": [], "commands": [command]}
	policy := {"program_rows": {"echo": {"any_words": true}}}
	tool_words.no_name(path) with input as printed with data.policy as policy
	tool_words.paths == [] with input as printed with data.policy as policy

	placeless := json.remove(path, ["place"])
	every other in [object.union(path, {"canonical": true}), placeless, json.remove(path, ["canonical"])] {
		# regal ignore:with-outside-test-context
		not tool_words.no_name(other) with input as in_script with data.policy as {}

		# regal ignore:with-outside-test-context
		not tool_words.no_name(other) with input as printed with data.policy as policy
	}
	not tool_words.no_name(path) with input as printed with data.policy as {}
	not tool_words.no_name(path) with input as {"command_parts": [], "commands": []} with data.policy as policy
	hidden := {"command_parts": [], "commands": [object.union(command, {"canonical": false})]}
	not tool_words.no_name(path) with input as hidden with data.policy as policy
}
