package admission.lib.tool_rules_test

import data.admission.lib.tool_rules
import future.keywords.not

_allow := {
	"size": 5,
	"names": ["s/free", "s/one_host", "s/two_hosts", "s/folder", "s/host_and_folder"],
	"covers": [
		{},
		{"host a": true},
		{"host a": true, "host b": true},
		{"/work/": true, "any host": true},
		{"host c": true, "/data/": true},
	],
	"selectors": {
		"web": {
			"always": {"rules": [1], "size": 1},
			"host a": {"rules": [1, 2], "size": 2},
			"host b": {"rules": [2], "size": 1},
		},
		"*": {
			"by name": {"rules": [0], "size": 1},
			"any host": {"rules": [3], "size": 1},
			"/work/": {"rules": [3], "size": 1},
			"host c": {"rules": [4], "size": 1},
			"/data/": {"rules": [4], "size": 1},
		},
	},
}

_deny := {
	"size": 3,
	"names": ["s/first", "s/second", "s/third"],
	"conditional": {}, "selectors": {"*": {"host x": 2, "host y": 1}, "web": {"always": 0, "host x": 0}},
}

_policy := {"tool_lookup": {
	"tools": {
		"web": {"selectors": ["*", "web"], "values": {}},
		"files": {"selectors": ["*"], "values": {}},
		"alone": {"selectors": [], "values": {}},
	},
	"policies": {"p": {"deny": _deny, "confirm": object.union(_deny, {"size": 0}), "allow": _allow}},
}}

test_matching if {
	tool_rules.matching("p", "web", "deny", {"always", "host x"}, []) == {0, 2} with data.policy as _policy
	tool_rules.matching("p", "files", "deny", {"always", "host x"}, []) == {2} with data.policy as _policy
	tool_rules.matching("p", "files", "deny", {"always", "host z"}, []) == set() with data.policy as _policy
	tool_rules.matching("p", "alone", "deny", {"always", "host x"}, []) == set() with data.policy as _policy
	tool_rules.matching("p", "web", "confirm", {"always"}, []) == {0} with data.policy as _policy
}

test_matching_needs_to_know_that_nothing_is_missing if {
	not tool_rules.matching("q", "web", "deny", {"always"}, []) with data.policy as _policy
	not tool_rules.matching("p", "unknown", "deny", {"always"}, []) with data.policy as _policy
	not tool_rules.matching("p", "web", "denied", {"always"}, []) with data.policy as _policy
	every lost in [
		"tool_lookup", "tool_lookup/tools", "tool_lookup/tools/web", "tool_lookup/tools/web/selectors",
		"tool_lookup/policies", "tool_lookup/policies/p", "tool_lookup/policies/p/deny", "tool_lookup/policies/p/deny/size",
	] {
		not tool_rules.matching("p", "web", "deny", {"always"}, []) with data.policy as json.remove(_policy, [lost])
	}
}

_conditional := {"number": 4, "aspects": ["/work/keys/"], "where": [{
	"argument": "a", "kind": "one_of", "of": ["x"], "folded": ["x"],
	"optional": false, "list": false,
}]}

_value(text) := {
	"name": "a", "present": true, "shape": "one", "size": 1,
	"items": [{"kind": "text", "text": text, "folded": text, "length": 1}],
}

test_a_pattern_meets_a_rule_with_conditions_unless_one_is_shown_not_to_hold if {
	deny := {"selectors": {}, "conditional": {"*": [_conditional]}}
	policy := json.patch(_policy, [{"op": "replace", "path": "tool_lookup/policies/p/deny", "value": deny}])
	found := [[pattern, text, met] |
		some [pattern, text] in [["/work/K*", "x"], ["/work/K*", "y"], ["/tmp/*", "x"], ["/tmp/*", "y"]]
		met := tool_rules.meeting("p", "web", "deny", pattern, "") with input as {"values": [_value(text)]}
			with data.policy as policy
	]
	found == [
		["/work/K*", "x", {4}],
		["/work/K*", "y", set()],
		["/tmp/*", "x", set()],
		["/tmp/*", "y", set()],
	]
}

test_a_pattern_of_a_command_that_keeps_its_files if {
	deny := {
		"selectors": {"web": {"/work/keys": 1, "kept /work/pads": 2}},
		"conditional": {"web": [
			object.union(_conditional, {"aspects": ["kept /work/pens"]}),
			object.union(_conditional, {"aspects": ["/work/paws"], "number": 3}),
		]},
	}
	policy := json.patch(_policy, [{"op": "replace", "path": "tool_lookup/policies/p/deny", "value": deny}])
	found := [met |
		some kind in ["", "kept "]
		met := tool_rules.meeting("p", "web", "deny", "/work/*", kind) with input as {"values": [_value("x")]}
			with data.policy as policy
	]
	found == [{1, 3}, {2, 4}]
}

test_a_pattern_over_folders_is_met_at_every_depth if {
	patterns := {
		"/w/**", "/w/**/k", "/w/**/c/keys/k", "/w/a/**/keys/k", "/w/a/b/c/keys/**", "/w/**/b/**/x", "/**/keys/k", "/**",
		"/w/a/b/c.key/**", "/w/**/c.key", "/w/**/c.key/k", "/w/**/b/d.key", "/w/x/**", "/x/**/keys", "/w/a/b/*",
	}
	policy := json.patch(_policy, [{"op": "replace", "path": "tool_lookup/policies/p/deny", "value": {
		"selectors": {"web": {"{cwd}/a/b/c/keys/": 1, "{cwd}/a/b/c.key": 2}},
		"conditional": {},
	}}])
	met := {pattern: found |
		some pattern in patterns
		found := tool_rules.meeting("p", "web", "deny", pattern, "") with data.policy as policy
			with input as {"context": {"cwd": "/w"}}
	}
	{pattern | met[pattern] == {1, 2}} == {"/w/**", "/w/**/b/**/x", "/**", "/w/a/b/*", "/w/**/c.key"}
	{pattern | met[pattern] == {1}} == {
		"/w/**/k", "/w/**/c/keys/k", "/w/a/**/keys/k", "/w/a/b/c/keys/**", "/**/keys/k", "/w/**/c.key/k", "/w/**/b/d.key",
	}
	{pattern | met[pattern] == {2}} == {"/w/a/b/c.key/**"}
}

_host_a := {"any host", "host a"}

_host_b := {"any host", "host b"}

_work := {"any path", "/", "/work/"}

_data := {"any path", "/", "/data/"}

_calls := {
	"nothing": {"hosts": [], "paths": [], "commands": [], "values": []},
	"one host": {"hosts": [_host_a], "paths": [], "commands": [], "values": []},
	"two hosts": {"hosts": [_host_a, _host_b], "paths": [], "commands": [], "values": []},
	"host and folder": {"hosts": [_host_b], "paths": [_work], "commands": [], "values": []},
	"another host and folder": {"hosts": [{"any host", "host c"}], "paths": [_data, _data], "commands": [], "values": []},
	"one of two folders": {"hosts": [], "paths": [_work, _data], "commands": [], "values": []},
	"host of one rule, folder of another": {"hosts": [_host_a], "paths": [_data], "commands": [], "values": []},
	"a command too": {"hosts": [_host_a], "paths": [], "commands": [{"any command"}], "values": []},
	"a command": {"hosts": [], "paths": [], "commands": [{"any command"}], "values": []},
	"nothing that a rule could cover": {"hosts": [set()], "paths": [], "commands": [], "values": []},
}

test_one_rule_has_to_cover_all if {
	found := {name: number |
		some name, held in _calls
		number := tool_rules.first_allowing("p", "web", held) with data.policy as _policy
	}
	found == {
		"nothing": 0,
		"one host": 1,
		"two hosts": 2,
		"host and folder": 3,
		"another host and folder": 4,
	}
}

test_a_rule_with_conditions_covers_no_call_without_anything_to_cover if {
	policy := json.remove(_policy, ["tool_lookup/policies/p/allow/selectors/*/by name"])
	every tool in ["web", "files"] {
		not tool_rules.first_allowing("p", tool, _calls.nothing) with data.policy as policy
	}
	data_call := {"call": {"arguments": [{"id": "arguments/body", "type": "data"}]}}
	tool_rules.first_allowing("p", "web", _calls.nothing) == 1 with data.policy as policy with input as data_call
	text_call := {"call": {"arguments": [{"id": "arguments/body", "type": "text"}]}}
	not tool_rules.first_allowing("p", "web", _calls.nothing) with data.policy as policy with input as text_call
}

test_only_rules_of_the_tool_allow if {
	found := {name: number |
		some name, held in _calls
		number := tool_rules.first_allowing("p", "files", held) with data.policy as _policy
	}
	found == {
		"nothing": 0,
		"one host": 3,
		"two hosts": 3,
		"host and folder": 3,
		"another host and folder": 4,
	}
	every held in _calls {
		not tool_rules.first_allowing("p", "alone", held) with data.policy as _policy
	}
}

test_what_is_held_has_to_be_complete if {
	every lost in ["hosts", "paths", "commands", "values"] {
		every held in _calls {
			not tool_rules.first_allowing("p", "web", json.remove(held, [lost])) with data.policy as _policy
		}
	}
}

test_by_name if {
	tool_rules.allowing_by_name("p", "web") == 0 with data.policy as _policy
	without := json.remove(_policy, ["tool_lookup/policies/p/allow/selectors/*/by name"])
	not tool_rules.allowing_by_name("p", "web") with data.policy as without
	not tool_rules.allowing_by_name("p", "alone") with data.policy as _policy
}

test_name if {
	tool_rules.name("p", "deny", 2) == "s/third" with data.policy as _policy
	not tool_rules.name("p", "deny", 3) with data.policy as _policy
}

test_some_covering if {
	tool_rules.some_covering("p", "web", _host_b) with data.policy as _policy
	not tool_rules.some_covering("p", "web", {"host d"}) with data.policy as _policy
	not tool_rules.some_covering("q", "web", _host_b) with data.policy as _policy
}

test_values_missing if {
	every policy in [{}, {"tool_lookup": {}}, json.remove(_policy, ["tool_lookup/policies/p/allow"])] {
		every held in _calls {
			not tool_rules.first_allowing("p", "web", held) with data.policy as policy
		}
		not tool_rules.allowing_by_name("p", "web") with data.policy as policy
		not tool_rules.name("p", "allow", 0) with data.policy as policy
		not tool_rules.some_covering("p", "web", _host_a) with data.policy as policy
	}
}

# `**/` of a rule covers any folders, so the last names decide; a pattern does not become a name with a dot in front.
test_a_pattern_and_a_rule_for_names_in_any_folder if {
	found := {[aspect, pattern] |
		some aspect, patterns in {
			"path **/.env": ["/w/src/*", "/w/*", "/w/.e*", "/w/src/?env", "/w/src/**", "/w/a**", "/*"],
			"path **/id_*": ["/w/src/*", "/w/dist*", "/w/i*", "/w/id_*/x", "/w/src/**/x"],
			"path **/*.key": ["/w/src/*", "/w/src/*.ts", "/w/*.k?y"],
			"path **/secret*": ["/w/secre?", "/w/secre"],
			"path **/keys/a*": ["/w/*/a", "/w/k*/*", "/w/docs/*", "/w/src/b*", "/*"],
			"path **/a/**/b": ["/w/c/*", "/w/c/d*"],
		}
		some pattern in patterns
		deny := {"selectors": {"*": {aspect: 7}}, "conditional": {}}
		policy := json.patch(_policy, [{"op": "replace", "path": "tool_lookup/policies/p/deny", "value": deny}])
		tool_rules.meeting("p", "web", "deny", pattern, "") == {7} with data.policy as policy
	}
	found == {
		["path **/.env", "/w/.e*"], ["path **/.env", "/w/src/**"], ["path **/.env", "/w/a**"],
		["path **/id_*", "/w/src/*"], ["path **/id_*", "/w/i*"], ["path **/id_*", "/w/src/**/x"],
		["path **/*.key", "/w/src/*"], ["path **/*.key", "/w/*.k?y"], ["path **/secret*", "/w/secre?"],
		["path **/keys/a*", "/w/*/a"], ["path **/keys/a*", "/w/k*/*"], ["path **/keys/a*", "/*"],
		["path **/a/**/b", "/w/c/*"], ["path **/a/**/b", "/w/c/d*"],
	}
}
