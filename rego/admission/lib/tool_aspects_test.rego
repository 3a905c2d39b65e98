package admission.lib.tool_aspects_test

import data.admission.lib.tool_aspects
import future.keywords.not

test_unplaced if {
	tool_aspects.unplaced({"unplaced": false}) == set()
	every call in [{"unplaced": true}, {"unplaced": null}, {}] {
		tool_aspects.unplaced(call) == {"any path without cwd"}
	}
}

test_prefixes_have_at_most_sixteen_words if {
	words := [format_int(number, 10) | some number in numbers.range(1, 17)]
	lengths := {length | some prefix in tool_aspects.prefixes(words); length := count(split(prefix, " ")) - 2}
	lengths == {number | some number in numbers.range(1, 16)}
}

test_a_path_that_is_not_canonical_or_not_absolute_has_no_aspects if {
	paths := [{"canonical": false, "path": "/a"}, {"path": "/a"}, {"canonical": true, "path": "a/b"}, {"canonical": true}]
	every path in paths {
		not tool_aspects.of_path_refused(path, {"cwd": "/work"}) with data.policy as _policy
	}
}

_policy := {
	"tool_lookup": {
		"ranges": ["10.0.0.0/8", "fd00::/8"],
		"host_paths": ["/v1/"],
		"path_patterns": [
			["**/*.key", `^/(?:[^/]+/)*[^/]*\.key$`],
			["{cwd}/docs/*.md", `^\{cwd\}/docs/[^/]*\.md$`],
		],
	},
	"addresses": {
		"public": [{"family": "ipv4", "cidr": "0.0.0.0/0"}],
		"refused": [{"cidr": "10.0.0.0/8"}],
		"local_names": ["localhost", "*.internal"],
	},
}

_host := {"id": "a", "canonical": true, "origin": "https://a.example.com"}

_path := {"id": "a", "canonical": true, "path": "/Work/Notes/a.txt", "below_cwd": "Notes/a.txt"}

_command := {
	"id": "a", "canonical": true, "words": ["/usr/bin/Git", "status", "-s"], "short": [], "parts": 0, "touches": [],
}

_of(command) := found if {
	# regal ignore:with-outside-test-context
	found := tool_aspects.of_command(command, {"cwd": "/work"}) with input.command_parts as []
}

test_destination if {
	found := tool_aspects.of_destination(_host) with data.policy as _policy
	found == {
		"any host",
		"host https://a.example.com", "host https://a.example.com:*",
		"host https://*.example.com", "host https://*.example.com:*",
		"host https://*.com", "host https://*.com:*",
	}
	broken := [
		json.patch(_host, [{"op": "replace", "path": "canonical", "value": false}]),
		json.remove(_host, ["canonical"]),
		json.remove(_host, ["origin"]),
		json.patch(_host, [{"op": "replace", "path": "origin", "value": null}]),
		json.patch(_host, [{"op": "replace", "path": "origin", "value": "a.example.com"}]),
	]
	every one in broken {
		not tool_aspects.of_destination(one) with data.policy as _policy
		not tool_aspects.of_destination_refused(one) with data.policy as _policy
	}
}

_at(origin) := {"canonical": true, "origin": origin}

test_any_host_is_public_and_by_https if {
	every origin in ["https://a.example.com", "https://8.8.8.8", "https://a.example.com:8443"] {
		found := tool_aspects.of_destination(_at(origin)) with data.policy as _policy
		"any host" in found
	}
	every origin in [
		"http://a.example.com", "https://localhost", "https://db.internal", "https://10.1.2.3", "https://[fd00::1]",
	] {
		found := tool_aspects.of_destination(_at(origin)) with data.policy as _policy
		not "any host" in found
		refused := tool_aspects.of_destination_refused(_at(origin)) with data.policy as _policy
		"any host" in refused
	}
	without := tool_aspects.of_destination(_host) with data.policy as json.remove(_policy, ["addresses/local_names"])
	not "any host" in without
}

test_ports_ranges_and_folders if {
	port := tool_aspects.of_destination(_at("https://a.example.com:8443")) with data.policy as _policy
	"host https://a.example.com:8443" in port
	"host https://*.example.com:*" in port
	not "host https://a.example.com" in port
	address := tool_aspects.of_destination(_at("http://10.1.2.3:9200")) with data.policy as _policy
	"host *://10.0.0.0/8:*" in address
	six := tool_aspects.of_destination(_at("https://[fd00::1]")) with data.policy as _policy
	"host *://fd00::/8:*" in six
	below := tool_aspects.of_destination(object.union(_host, {"path": "/v1/x"})) with data.policy as _policy
	"host https://a.example.com/v1/" in below
	every path in ["/v1", "/v10/x", "/V1/x", null] {
		found := tool_aspects.of_destination(object.union(_host, {"path": path})) with data.policy as _policy
		not "host https://a.example.com/v1/" in found
	}
}

test_refused_by_every_scheme_and_port if {
	found := tool_aspects.of_destination_refused(_at("http://a.example.com:8080")) with data.policy as _policy
	every form in [
		"http://a.example.com:8080", "http://a.example.com:*", "*://a.example.com:8080", "*://a.example.com:*",
		"*://*.example.com:*", "*://*.a.example.com:*",
	] {
		concat(" ", ["host", form]) in found
	}
	plain := tool_aspects.of_destination_refused(_at("http://a.example.com")) with data.policy as _policy
	"host *://a.example.com:80" in plain
	secure := tool_aspects.of_destination_refused(_host) with data.policy as _policy
	"host *://a.example.com:443" in secure
}

test_refused_in_a_folder_whatever_its_spelling if {
	every path in ["/v1/x", "/V1/x", "/v1", null] {
		found := tool_aspects.of_destination_refused(object.union(_host, {"path": path})) with data.policy as _policy
		"host https://a.example.com/v1/" in found
	}
	other := tool_aspects.of_destination_refused(object.union(_host, {"path": "/v2/"})) with data.policy as _policy
	not "host https://a.example.com/v1/" in other
	lost := json.remove(_policy, ["tool_lookup/host_paths"])
	not tool_aspects.of_destination_refused(_host) with data.policy as lost
}

test_patterns_of_paths if {
	key := {"canonical": true, "path": "/work/Deploy/Server.KEY", "below_cwd": "Deploy/Server.KEY"}
	refused := tool_aspects.of_path_refused(key, {"cwd": "/work"}) with data.policy as _policy
	"path **/*.key" in refused
	allowed := tool_aspects.of_path(key) with data.policy as _policy
	not "path **/*.key" in allowed
	document := {"canonical": true, "path": "/work/docs/a.md", "below_cwd": "docs/a.md"}
	below := tool_aspects.of_path(document) with data.policy as _policy
	"path {cwd}/docs/*.md" in below
	over := tool_aspects.of_path_refused(document, {"cwd": "/work"}) with data.policy as _policy
	"path {cwd}/docs/*.md" in over
	deeper := {"canonical": true, "path": "/work/docs/x/a.md", "below_cwd": "docs/x/a.md"}
	none := tool_aspects.of_path(deeper) with data.policy as _policy
	not "path {cwd}/docs/*.md" in none
	lost := json.remove(_policy, ["tool_lookup/path_patterns"])
	not tool_aspects.of_path_refused(key, {"cwd": "/work"}) with data.policy as lost
}

test_the_working_folder_itself if {
	every path in ["/work", "/work/"] {
		tool_aspects.of_cwd({"path": path}, {"cwd": "/work"}) == {"{cwd}"}
	}
	every path in ["/work//", "/work/a", null, ""] {
		tool_aspects.of_cwd({"path": path}, {"cwd": "/work"}) == set()
	}
	tool_aspects.of_cwd({}, {}) == set()
	every wrong in [null, "", "work"] {
		tool_aspects.of_cwd({"path": wrong}, {"cwd": wrong}) == set()
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
	} with data.policy as _policy
	kelvin := {"canonical": true, "path": "/\u212aeys"}
	"/keys" in tool_aspects.of_path_refused(kelvin, {"cwd": "/work"}) with data.policy as _policy
	long_s := {"canonical": true, "path": "/\u017fecret"}
	"/secret" in tool_aspects.of_path_refused(long_s, {"cwd": "/work"}) with data.policy as _policy
}

test_a_folder_is_refused_itself if {
	every path in ["/etc", "/etc/", "/ETC"] {
		found := tool_aspects.of_path_refused({"canonical": true, "path": path}, {"cwd": "/work"}) with data.policy as _policy
		"/etc/" in found
	}
	every path in ["/work", "/work/"] {
		found := tool_aspects.of_path_refused({"canonical": true, "path": path}, {"cwd": "/work"}) with data.policy as _policy
		"{cwd}/" in found
	}
	"/" in tool_aspects.of_path_refused({"canonical": true, "path": "/"}, {"cwd": "/work"}) with data.policy as _policy
	"{cwd}/a" in tool_aspects.of_path_refused({"canonical": true, "path": "/a"}, {"cwd": "/"}) with data.policy as _policy
}

test_refused_without_a_working_folder if {
	every asked in [{}, {"cwd": null}, {"cwd": ""}, null] {
		"any path without cwd" in tool_aspects.of_path_refused(_path, asked) with data.policy as _policy
	}
	not "any path without cwd" in tool_aspects.of_path_refused(_path, {"cwd": "/other"}) with data.policy as _policy
	not "{cwd}/" in tool_aspects.of_path_refused(_path, {"cwd": "/other"}) with data.policy as _policy
	worker := {"canonical": true, "path": "/worker"}
	beside := tool_aspects.of_path_refused(worker, {"cwd": "/work"}) with data.policy as _policy
	not "{cwd}/" in beside
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
		"command 1 ./",
		"command 1 /usr/bin/git",
		"command 2 /usr/bin/git status",
		"command 3 /usr/bin/git status -s",
		"command 1 git",
		"command 2 git status",
		"command 3 git status -s",
	} with data.policy as _policy
}

test_command_refused_by_what_its_words_may_be if {
	touching := object.union(_command, {"touches": ["/usr/bin/Git", "/work/Keys/a"]})
	found := tool_aspects.of_command_refused(touching, {"cwd": "/work"}) with data.policy as _policy
	every aspect in ["/usr/bin/", "/usr/bin/git", "{cwd}/keys/", "{cwd}/keys/a", "/work/"] {
		aspect in found
	}
	not "any path" in found
	not "any path without cwd" in found
	every asked in [{}, {"cwd": null}, {"cwd": ""}, null] {
		"any path without cwd" in tool_aspects.of_command_refused(_command, asked) with data.policy as _policy
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
	tool_aspects.of_command_refused(_command, {"cwd": "/work"}) with data.policy as _policy
	every canonical in [false, null] {
		one := object.union(_command, {"canonical": canonical})
		not tool_aspects.of_command_refused(one, {"cwd": "/work"}) with data.policy as _policy
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
	command := object.union(_command, {"parts": 2})
	found := tool_aspects.of_command(command, {"cwd": "/work"}) with input.command_parts as parts
		with data.policy as {"program_rows": {"p": {"none": ["-s"], "execute": ["-s"]}}}
	found == {
		"any command", "command+execute,redirect 1 /usr/bin/Git", "command+execute,redirect 2 /usr/bin/Git status",
		"command+redirect 3 /usr/bin/Git status -s",
	}
	not "any command" in (_of(_command) - {"any command"})
}

test_a_program_below_the_working_folder if {
	every program in ["./x", "bin/x", "/work/x"] {
		"command 1 ./" in _of(object.union(_command, {"words": [program, "a"]}))
	}
	every program in ["x", "/x", "/workshop/x"] {
		not "command 1 ./" in _of(object.union(_command, {"words": [program, "a"]}))
	}
	every cwd in ["/", "", null, 1] {
		found := tool_aspects.of_command(_command, {"cwd": cwd}) with input.command_parts as []
		not "command 1 ./" in found
	}
}

test_what_a_command_only_names_is_marked if {
	values := object.union(_policy, {"program_rows": {"cat": {"keeps": true, "operands": "any"}}})
	command := object.union(_command, {"words": ["cat", "keys"], "touches": ["/work/keys"], "parts": 0})
	found := tool_aspects.of_command_refused(command, {"cwd": "/work"}) with data.policy as values
		with input as {"commands": [command], "command_parts": []}
	every aspect in ["kept /work/keys", "kept {cwd}/keys", "command 1 cat"] {
		aspect in found
	}
	{"{cwd}/keys", "command 1 ./"} & found == set()
}

test_refused_by_an_option_or_behind_options_of_its_program if {
	part := {"command": "a", "kind": "option", "name": "-f", "program": "git push", "index": 3}
	command := object.union(_command, {"words": ["git", "-p", "push", "-f"], "short": ["git", "push", "-f"], "parts": 1})
	found := tool_aspects.of_command_refused(command, {"cwd": "/work"}) with input.command_parts as [part]
		with data.policy as object.union(_policy, {"program_rows": {"git push": {"write": ["-f"]}}})
	every aspect in ["command 2 git push", "option -f 2 git push", "option -f 1 git"] {
		aspect in found
	}
	not "option ? 1 git" in found
}
