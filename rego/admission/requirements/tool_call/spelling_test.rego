package admission.requirements.tool_call.spelling_test

import data.admission.requirements.tool_call.spelling
import future.keywords.not

_policy := {"tools": {"tools": {"here": {"paths_on": "this_machine"}, "there": {"paths_on": "elsewhere"}}}}

test_destination_canonical if {
	spelling.destination_canonical({"id": "a", "canonical": true, "origin": "https://a.example.com"})
	every one in [
		{"id": "a", "canonical": false, "origin": "https://a.example.com"}, {"id": "a", "canonical": true},
		{"id": "a", "origin": "https://a.example.com"}, {"canonical": true, "origin": null}, {}, null,
	] {
		not spelling.destination_canonical(one)
	}
}

test_words if {
	command := {"id": "c", "canonical": true, "words": ["cat", "0"]}
	policy := {"tool_lookup": {"words_without_hosts": {"all": {"command 1 cat": true}}}}
	word := {"id": "a", "canonical": false, "word": {"command": "c", "index": 1, "label": false, "remote": false}}
	spelling.destination_canonical(word) with input as {"commands": [command]} with data.policy as policy
	not spelling.destination_canonical(word) with input as {"commands": [command]} with data.policy as {}
	spelling.destination_canonical({"canonical": false, "word": {"label": true}})
}

test_destination_in_a_script if {
	url := {"id": "a", "canonical": false, "command": "c", "place": 2}
	script := {"command": "c", "kind": "script", "name": "script", "program": "python", "index": 2, "text": "f('a://b')"}
	spelling.destination_canonical(url) with input as {"command_parts": [script]} with data.policy as {}
	every other in [{"kind": "option"}, {"index": 1}, {"command": "d"}] {
		part := object.union(script, other)
		not spelling.destination_canonical(url) with input as {"command_parts": [part]} with data.policy as {}
	}
}

test_destination_of_a_command_in_the_sandbox if {
	one := {"canonical": false, "command": "c"}
	policy := {"tools": {"tools": {"t": {"hosts_in_commands": "enforced"}}}}
	spelling.destination_canonical(one) with input as {"call": {"tool": "t"}} with data.policy as policy
	not spelling.destination_canonical(one) with input as {"call": {"tool": "u"}} with data.policy as policy
	every odd in [{"command": "c"}, {"command": "c", "canonical": true}, {"command": "c", "canonical": null}] {
		not spelling.destination_canonical(odd) with input as {"call": {"tool": "t"}} with data.policy as policy
	}
	beside := {"canonical": false}
	not spelling.destination_canonical(beside) with input as {"call": {"tool": "t"}} with data.policy as policy
}

test_command_looked_at if {
	found := {[tool, links] |
		some tool in ["here", "there", "unheard of"]
		some links in ["none", "unknown", "linked", null]
		spelling.command_inspected({"links": links}) with input as {"call": {"tool": tool}} with data.policy as _policy
	}
	found == {["here", "none"], ["there", "none"], ["unheard of", "none"], ["there", "unknown"]}
	not spelling.command_inspected({"id": "a"}) with input as {"call": {"tool": "there"}} with data.policy as _policy
	not spelling.command_inspected({"links": "unknown"}) with input as {"call": {"tool": "there"}} with data.policy as {}
}

test_path_canonical if {
	spelling.path_canonical({"id": "a", "canonical": true, "path": "/work"})
	every one in [
		{"id": "a", "canonical": false, "path": "/work"}, {"id": "a", "canonical": true}, {"id": "a", "path": "/work"},
		{"canonical": true, "path": "work"}, {"canonical": true, "path": null}, {}, null,
	] {
		not spelling.path_canonical(one)
	}
}

test_unlinked if {
	found := {links | some links in ["none", "followed", "unknown", "linked", null]; spelling.unlinked({"links": links})}
	found == {"none", "followed", "unknown"}
	not spelling.unlinked({"id": "a"})
}

test_looked_at if {
	found := {[tool, links] |
		some tool in ["here", "there", "unheard of"]
		some links in ["none", "followed", "unknown", "linked", null]
		spelling.inspected({"links": links}) with input as {"call": {"tool": tool}} with data.policy as _policy
	}
	every_tool := {[tool, links] |
		some tool in ["here", "there", "unheard of"]
		some links in ["none", "followed", "linked"]
	}
	found == every_tool | {["there", "unknown"]}
	not spelling.inspected({"id": "a"}) with input as {"call": {"tool": "there"}} with data.policy as _policy
	not spelling.inspected({"links": "unknown"}) with input as {} with data.policy as _policy
	not spelling.inspected({"links": "unknown"}) with input as {"call": {"tool": "there"}} with data.policy as {}
}

test_each_part_of_a_command_is_asked_for if {
	command := {
		"id": "a", "canonical": true, "words": ["ls", "-l"], "short": [], "parts": 1, "patterns": ["/w/*"],
		"touches": ["/w/-l", "/w"],
	}
	spelling.command_canonical(command)
	spelling.command_canonical(object.union(command, {"touches": []}))
	every change in [
		{"canonical": false}, {"canonical": null}, {"words": []}, {"words": {"0": "ls"}}, {"words": "ls"}, {"words": null},
		{"words": [1, "ls"]}, {"words": ["ls", 1]}, {"touches": {}}, {"touches": null}, {"touches": ["/w", "w"]},
		{"touches": ["w", "/w"]}, {"patterns": null}, {"patterns": {}}, {"patterns": ["*"]}, {"short": null}, {"parts": null},
	] {
		not spelling.command_canonical(object.union(command, change))
	}
}

test_command_canonical if {
	command := {"id": "a", "canonical": true, "words": ["ls"], "short": [], "parts": 0, "patterns": [], "touches": []}
	spelling.command_canonical(command)
	every lost in ["canonical", "words", "short", "parts", "patterns", "touches"] {
		not spelling.command_canonical(object.remove(command, [lost]))
	}
	every one in [
		{"id": "a", "canonical": false, "words": ["ls"]}, {"id": "a", "canonical": true}, {"id": "a", "words": ["ls"]},
		{"canonical": true, "words": []}, {"canonical": true, "words": "ls"}, {"canonical": true, "words": ["ls", 1]},
		{"canonical": true, "words": {"0": "ls"}}, {}, null, {"id": "a", "canonical": true, "words": ["ls"]},
		{"canonical": true, "words": ["ls"], "touches": null}, {"canonical": true, "words": ["ls"], "touches": ["a"]},
	] {
		not spelling.command_canonical(one)
	}
}

test_path_in_a_script if {
	path := {"id": "p", "canonical": false, "links": "linked", "command": "c", "place": 1}
	part := {"command": "c", "kind": "script", "program": "sed", "index": 1, "text": "/x/p"}
	policy := {"program_rows": {"sed": {"scripts": ["^/x/p$"]}}}
	spelling.path_canonical(path) with input as {"command_parts": [part]} with data.policy as policy
	spelling.unlinked(path) with input as {"command_parts": [part]} with data.policy as policy
	spelling.inspected(json.remove(path, ["links"])) with input as {"command_parts": [part]} with data.policy as policy
	every requirement_input in [{"command_parts": []}, {"command_parts": [object.union(part, {"index": 2})]}] {
		not spelling.path_canonical(path) with input as requirement_input with data.policy as policy
	}
	canonical := object.union(path, {"canonical": true, "path": "x"})
	not spelling.path_canonical(canonical) with input as {"command_parts": [part]} with data.policy as {}
	not spelling.unlinked(canonical) with input as {"command_parts": [part]} with data.policy as {}
	not spelling.unlinked(path) with input as {"command_parts": []} with data.policy as policy
}
