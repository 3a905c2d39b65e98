package admission.lib.tool_aspects_test

import data.admission.lib.tool_aspects
import future.keywords.not

test_unplaced if {
	tool_aspects.unplaced({"unplaced": false}) == set()
	every call in [{"unplaced": true}, {"unplaced": null}, {}] {
		tool_aspects.unplaced(call) == {"any path without cwd"}
	}
}

_host := {"id": "a", "canonical": true, "origin": "https://a.example.com"}

_path := {"id": "a", "canonical": true, "path": "/Work/Notes/a.txt", "below_cwd": "Notes/a.txt"}

_command := {
	"id": "a", "canonical": true, "words": ["/usr/bin/Git", "status", "-s"], "short": [], "parts": 0, "touches": [],
}

_of(command) := found if {
	found := tool_aspects.of_command(command) with input.command_parts as []
}

test_destination if {
	tool_aspects.of_destination(_host) == {"any host", "host https://a.example.com"}
	broken := [
		json.patch(_host, [{"op": "replace", "path": "canonical", "value": false}]),
		json.remove(_host, ["canonical"]),
		json.remove(_host, ["origin"]),
		json.patch(_host, [{"op": "replace", "path": "origin", "value": null}]),
		json.patch(_host, [{"op": "replace", "path": "origin", "value": "a.example.com"}]),
	]
	every one in broken {
		not tool_aspects.of_destination(one)
	}
}

test_path_letter_for_letter if {
	tool_aspects.of_path(_path) == {
		"any path",
		"/",
		"/Work/",
		"/Work/Notes/",
		"/Work/Notes/a.txt",
		"{cwd}/",
		"{cwd}/Notes/",
		"{cwd}/Notes/a.txt",
	}
}

test_a_folder_is_not_in_itself if {
	folder := {"canonical": true, "path": "/work/notes/", "below_cwd": "notes/"}
	tool_aspects.of_path(folder) == {"any path", "/", "/work/", "/work/notes", "{cwd}/", "{cwd}/notes"}
	tool_aspects.of_path({"canonical": true, "path": "/work/", "below_cwd": ""}) == {"any path", "/", "/work"}
	tool_aspects.of_path({"canonical": true, "path": "/"}) == {"any path"}
}

test_outside_of_the_working_folder if {
	tool_aspects.of_path({"canonical": true, "path": "/a"}) == {"any path", "/", "/a"}
	tool_aspects.of_path({"canonical": true, "path": "/a", "below_cwd": true}) == {"any path", "/", "/a"}
	tool_aspects.of_path({"canonical": true, "path": "/a", "below_cwd": "a"}) == {"any path", "/", "/a"}
}

test_refused_whatever_the_letter_case if {
	tool_aspects.of_path_refused(_path, {"cwd": "/wORK"}) == {
		"any path",
		"/",
		"/work/",
		"/work/notes/",
		"/work/notes/a.txt",
		"/work/notes/a.txt/",
		"{cwd}/",
		"{cwd}/notes/",
		"{cwd}/notes/a.txt",
		"{cwd}/notes/a.txt/",
	}
	kelvin := {"canonical": true, "path": "/\u212aeys"}
	"/keys" in tool_aspects.of_path_refused(kelvin, {"cwd": "/work"})
	long_s := {"canonical": true, "path": "/\u017fecret"}
	"/secret" in tool_aspects.of_path_refused(long_s, {"cwd": "/work"})
}

test_a_folder_is_refused_itself if {
	every path in ["/etc", "/etc/", "/ETC"] {
		"/etc/" in tool_aspects.of_path_refused({"canonical": true, "path": path}, {"cwd": "/work"})
	}
	every path in ["/work", "/work/"] {
		"{cwd}/" in tool_aspects.of_path_refused({"canonical": true, "path": path}, {"cwd": "/work"})
	}
	"/" in tool_aspects.of_path_refused({"canonical": true, "path": "/"}, {"cwd": "/work"})
	"{cwd}/a" in tool_aspects.of_path_refused({"canonical": true, "path": "/a"}, {"cwd": "/"})
}

test_refused_without_a_working_folder if {
	every asked in [{}, {"cwd": null}, {"cwd": ""}, null] {
		"any path without cwd" in tool_aspects.of_path_refused(_path, asked)
	}
	not "any path without cwd" in tool_aspects.of_path_refused(_path, {"cwd": "/other"})
	not "{cwd}/" in tool_aspects.of_path_refused(_path, {"cwd": "/other"})
	not "{cwd}/" in tool_aspects.of_path_refused({"canonical": true, "path": "/worker"}, {"cwd": "/work"})
}

test_path_missing if {
	broken := [
		{}, {"canonical": true}, {"canonical": true, "path": null}, {"canonical": true, "path": "work"},
		{"path": "/work"}, {"canonical": false, "path": "/work"},
	]
	every one in broken {
		not tool_aspects.of_path(one)
		not tool_aspects.of_path_refused(one, {"cwd": "/work"})
	}
}

test_a_path_of_many_parts if {
	deep := concat("", ["/a" | some _ in numbers.range(1, 100)])
	found := tool_aspects.of_path({"canonical": true, "path": deep})
	count(found) == 34
	deep in found
}

test_command_word_for_word if {
	_of(_command) == {
		"any command",
		"command 1 /usr/bin/Git",
		"command 2 /usr/bin/Git status",
		"command 3 /usr/bin/Git status -s",
	}
}

test_command_refused_whatever_the_folder_of_its_program if {
	tool_aspects.of_command_refused(_command, {"cwd": "/Srv"}) == {
		"/",
		"/srv",
		"/srv/",
		"{cwd}/",
		"any command",
		"command 1 /usr/bin/git",
		"command 2 /usr/bin/git status",
		"command 3 /usr/bin/git status -s",
		"command 1 git",
		"command 2 git status",
		"command 3 git status -s",
	}
}

test_command_refused_by_what_its_words_may_be if {
	touching := object.union(_command, {"touches": ["/usr/bin/Git", "/work/Keys/a"]})
	found := tool_aspects.of_command_refused(touching, {"cwd": "/work"})
	every aspect in ["/usr/bin/", "/usr/bin/git", "{cwd}/keys/", "{cwd}/keys/a", "/work/"] {
		aspect in found
	}
	not "any path" in found
	not "any path without cwd" in found
	every asked in [{}, {"cwd": null}, {"cwd": ""}, null] {
		"any path without cwd" in tool_aspects.of_command_refused(_command, asked)
	}
}

test_words_with_blanks_are_other_words if {
	found := _of({"id": "a", "canonical": true, "words": ["git status", "-s"], "parts": 0})
	not "command 2 git status" in found
	found == {"any command", "command 1 git status", "command 2 git status -s"}
}

test_a_command_of_many_words if {
	words := [sprintf("w%d", [number]) | some number in numbers.range(1, 40)]
	count(_of({"id": "a", "canonical": true, "words": words, "parts": 0})) == 17
}

test_what_is_not_canonical_is_looked_at_by_no_rule if {
	tool_aspects.of_command_refused(_command, {"cwd": "/work"})
	every canonical in [false, null] {
		one := object.union(_command, {"canonical": canonical})
		not tool_aspects.of_command_refused(one, {"cwd": "/work"})
		not _of(one)
	}
}

test_command_missing if {
	broken := [
		{}, {"canonical": true}, {"canonical": true, "words": null}, {"words": ["ls"]},
		{"canonical": false, "words": ["ls"]},
	]
	every one in broken {
		not _of(one)
		not tool_aspects.of_command_refused(one, {"cwd": "/work"})
	}
	not tool_aspects.of_command_refused({"canonical": true, "short": [], "words": []}, {"cwd": "/work"})
}

test_what_a_command_can_do_beyond_its_words if {
	parts := [
		{"command": "a", "kind": "option", "name": "-s", "program": "p", "index": 2},
		{"command": "a", "kind": "redirect", "name": "write", "index": 0},
		{"command": "b", "kind": "syntax", "name": "function", "index": 0},
	]
	found := tool_aspects.of_command(object.union(_command, {"parts": 2})) with input.command_parts as parts
		with data.policy as {"program_rows": {"p": {"none": ["-s"], "execute": ["-s"]}}}
	found == {
		"any command", "command+execute,redirect 1 /usr/bin/Git", "command+execute,redirect 2 /usr/bin/Git status",
		"command+redirect 3 /usr/bin/Git status -s",
	}
	not "any command" in (_of(_command) - {"any command"})
}

test_refused_by_an_option_or_behind_options_of_its_program if {
	part := {"command": "a", "kind": "option", "name": "-f", "program": "git push", "index": 3}
	command := object.union(_command, {"words": ["git", "-p", "push", "-f"], "short": ["git", "push", "-f"], "parts": 1})
	found := tool_aspects.of_command_refused(command, {"cwd": "/work"}) with input.command_parts as [part]
		with data.policy as {"program_rows": {"git push": {"write": ["-f"]}}}
	every aspect in ["command 2 git push", "option -f 2 git push", "option -f 1 git"] {
		aspect in found
	}
	not "option ? 1 git" in found
}
