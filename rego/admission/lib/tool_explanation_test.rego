package admission.lib.tool_explanation_test

import data.admission.lib.tool_explanation
import future.keywords.not

_policy := {
	"tool_lookup": {
		"ranges": [], "host_paths": [], "path_patterns": [],
		"tools": {"web": {"selectors": ["web"], "values": {}}},
		"profiles": {"all": {"web": true}, "none": {}},
		"policies": {"p": {
			"deny": {"size": 1, "names": ["s/never"], "conditional": {}, "selectors": {
				"web": {"host https://x.example.com": 0},
			}},
			"confirm": {"size": 1, "names": ["s/ask"], "conditional": {}, "selectors": {"web": {"command 1 rm": 0}}},
			"allow": {
				"size": 1,
				"names": ["s/web"],
				"covers": [{"host https://a.example.com": true}],
				"selectors": {"web": {"host https://a.example.com": {"rules": [0], "size": 1}}},
			},
		}},
	},
	"tools": {
		"tools": {"web": {"side_effects": ["execute"]}},
		"policies": {"p": {"base": "confirm_all", "principals": "any"}},
	},
}

_host(name) := {"id": name, "canonical": true, "origin": $"https://{name}.example.com"}

_request := {
	"now": 100,
	"context": {"policy": "p", "profile": "all", "cwd": "/work"},
	"caller": {"principal": "agent"},
	"call": {"tool": "web", "touches": [], "unplaced": false},
	"destinations": [_host("a")],
	"paths": [],
	"commands": [],
	"command_parts": [],
	"values": [],
	"prefixes": [],
}

_nothing := {"destinations": [], "paths": [], "commands": [], "values": []}

_allowed := {
	"visible": true,
	"base": "confirm_all",
	"policy_known": true,
	"in_profile": true,
	"section": "allow",
	"rule": "s/web",
	"basis": "rule",
	"uncovered": _nothing,
	"beyond": {},
	"needs": [],
}

_undecided := {"section": "none", "rule": null, "basis": null}

_prefix := {
	"id": "p1", "tool": "web", "principal": "agent", "cwd": "/work", "words": ["ls"], "approver": "ana",
	"expires_at": 200, "revoked": false,
}

_command(words) := {
	"id": "c", "canonical": true, "words": words, "short": [], "parts": 0, "patterns": [], "touches": [],
}

_unknown_policy := object.union(_undecided, {
	"visible": false,
	"base": "deny_all",
	"policy_known": false,
	"uncovered": {"destinations": ["a"]},
	"needs": ["allow_rule", "no_confirm_rule", "no_deny_rule", "policy", "principal"],
})

_unknown_tool := object.union(_undecided, {
	"visible": false,
	"in_profile": false,
	"uncovered": {"destinations": ["a"]},
	"needs": ["allow_rule", "no_confirm_rule", "no_deny_rule", "profile", "tool"],
})

# What is changed in the request, and what then differs from an allowed one.
_differences := {
	"allowed": [{}, {}],
	"allowed by a prefix": [
		{"destinations": [], "commands": [_command(["ls", "-l"])], "prefixes": [_prefix]},
		{"rule": "prefix:p1", "basis": "argument_text_prefix", "beyond": {"c": []}},
	],
	"allowed by a prefix with a host": [
		{
			"destinations": [object.union(_host("b"), {"word": {"command": "c", "index": 0}, "command": "c"})],
			"commands": [_command(["ls", "-l"])],
			"prefixes": [_prefix],
		},
		{"rule": "prefix:p1", "basis": "argument_text_prefix", "beyond": {"c": []}},
	],
	"refused by a rule": [{"destinations": [_host("a"), _host("x")]}, {
		"section": "deny",
		"rule": "s/never",
		"basis": null,
		"uncovered": {"destinations": ["x"]},
		"needs": ["allow_rule", "no_deny_rule"],
	}],
	"asked by a rule": [{"commands": [_command(["rm", "a"])]}, {
		"section": "confirm",
		"rule": "s/ask",
		"basis": null,
		"uncovered": {"commands": ["c"]},
		"beyond": {"c": []},
		"needs": ["allow_rule", "no_confirm_rule"],
	}],
	"with a word that is not known": [
		{
			"commands": [object.union(_command(["ls"]), {"parts": 1})],
			"command_parts": [{"id": "w", "command": "c", "kind": "word", "index": 1}],
		},
		object.union(_undecided, {
			"uncovered": {"commands": ["c"]},
			"beyond": {"c": ["unknown"]},
			"needs": ["allow_rule"],
		}),
	],
	"covered by nothing": [
		{"destinations": [_host("b")], "paths": [{"id": "p", "canonical": true, "path": "/work/a"}]},
		object.union(_undecided, {"uncovered": {"destinations": ["b"], "paths": ["p"]}, "needs": ["allow_rule"]}),
	],
	"not in the profile": [
		{"context": {"profile": "none"}},
		{"visible": false, "in_profile": false, "needs": ["profile"]},
	],
	"unknown policy": [{"context": {"policy": "q"}}, _unknown_policy],
	"unknown tool": [{"call": {"tool": "other", "touches": [], "unplaced": false}}, _unknown_tool],
}

test_told if {
	every pair in _differences {
		request := object.union(_request, pair[0])
		told := object.union(_allowed, pair[1])
		tool_explanation.explanation == told with input as request with data.policy as _policy
	}
}

test_what_a_rule_covers_is_not_told_as_uncovered if {
	aspects := {"/work/", "{cwd}", "command 1 ls", "value a any"}
	values := {"a": {"value a any": []}, "b": {"value b any": []}}
	of_tool := [{"op": "replace", "path": "tool_lookup/tools/web/values", "value": values}]
	policy := json.patch(json.patch(_policy, of_tool), [
	{"op": "add", "path": ["tool_lookup", "policies", "p", "allow", "selectors", "web", aspect], "value": {
		"rules": [0],
		"size": 1,
	}} |
		some aspect in aspects
	])
	request := object.union(_request, {
		"paths": [
			{"id": "p", "canonical": true, "path": "/work/a"},
			{"id": "q", "canonical": true, "path": "/tmp/a"},
			{"id": "r", "canonical": true, "path": "/work"},
		],
		"commands": [_command(["ls"]), object.union(_command(["rm"]), {"id": "d"})],
	})
	told := tool_explanation.explanation with input as request with data.policy as policy
	told.uncovered == {"destinations": [], "paths": ["q"], "commands": ["d"], "values": ["b"]}
}

test_without_facts if {
	told := tool_explanation.explanation with input as {"context": {}} with data.policy as _policy
	told == {
		"visible": false,
		"base": "deny_all",
		"policy_known": false,
		"in_profile": false,
		"section": "none",
		"rule": null,
		"basis": null,
		"uncovered": _nothing,
		"beyond": {},
		"needs": [
			"allow_rule",
			"no_confirm_rule",
			"no_deny_rule",
			"policy",
			"principal",
			"profile",
			"tool",
		],
	}
}
