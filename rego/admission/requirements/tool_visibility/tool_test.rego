package admission.requirements.tool_visibility.tool_test

import data.admission.requirements.tool_visibility.tool
import future.keywords.not

_policy := {
	"results": {"markers": {"phrases": [], "tokens": []}},
	"tool_lookup": {
		"tools": {"read": {"selectors": ["*"], "values": {}}, "pinned": {"selectors": ["*"], "values": {}}},
		"profiles": {"all": {"*": true}, "nothing": {}},
	},
	"tools": {
		"tools": {"read": {"definition": "none"}, "pinned": {"definition": "sha256:a"}},
		"policies": {
			"p": {"base": "deny_all_visible", "principals": "any"},
			"q": {"base": "deny_all", "principals": "any"},
		},
	},
}

_read := {"id": "read", "name": "read", "occurrences": 1, "hidden": 0, "instructions": 0}

_holds("known", one) if tool.tool_known(one)

_holds("shown", one) if tool.tool_shown(one)

_holds("in_profile", one) if tool.tool_in_profile(one)

_holds("as_pinned", one) if tool.as_pinned(one)

_holds("informing", one) if tool.informing(one)

_holds("listed_once", one) if tool.listed_once(one)

_holds("not_stopped", one) if tool.not_stopped(one)

_holds("approved", one) if tool.approved(one)

_all := {"known", "shown", "in_profile", "as_pinned", "informing", "listed_once", "not_stopped", "approved"}

_input(context) := {"context": context, "stops": [], "agents": []}

_granted := {"policy": "p", "profile": "all"}

# A tool, what is asked, and which requirements do not hold.
_tools := [
	[_read, _granted, set()],
	[_read, {"policy": "q", "profile": "all"}, {"shown"}],
	[_read, {"profile": "all"}, {"shown"}],
	[_read, {"policy": "p", "profile": "nothing"}, {"in_profile"}],
	[_read, {"policy": "p"}, {"in_profile"}],
	[object.union(_read, {"occurrences": 2}), _granted, {"listed_once"}],
	[object.union(_read, {"id": "pinned", "name": "pinned"}), _granted, {"as_pinned"}],
	[object.union(_read, {"instructions": 1}), _granted, {"informing"}],
	[object.union(_read, {"hidden": 2}), _granted, {"informing"}],
	[object.union(_read, {"id": "Read", "name": "Read"}), _granted, {"known", "shown", "in_profile", "as_pinned"}],
	[{"id": "#0", "occurrences": 1}, _granted, _all],
	[{}, {}, _all],
]

test_each_by_itself if {
	every line in _tools {
		held := {name |
			some name in _all
			_holds(name, line[0]) with input as _input(line[1]) with data.policy as _policy
		}
		held == _all - line[2]
	}
}

test_a_stopped_tool_is_hidden if {
	tool.not_stopped(_read) with input as {"stops": [
		{"scope": "tool", "name": "write"},
		{"scope": "principal", "name": "read"},
		{"scope": "all", "name": ""},
	]}
	not tool.not_stopped(_read) with input as {"stops": [
		{"scope": "tool", "name": "write"},
		{"scope": "tool", "name": "read"},
	]}
	every stop in [{}, null, {"scope": "tool"}, {"scope": "tool", "name": null}, {"scope": "others", "name": "write"}] {
		not tool.not_stopped(_read) with input as {"stops": [stop]}
	}
	every wrong in [{}, {"stops": null}, {"stops": {}}] {
		not tool.not_stopped(_read) with input as wrong
	}
}

test_an_agent_sees_its_tools if {
	agent := {"active": true, "tools": ["read"]}
	tool.approved(_read) with input as {"agents": [agent]}
	every change in [{"active": false}, {"active": null}, {"tools": []}, {"tools": ["write"]}, {"tools": "read"}] {
		not tool.approved(_read) with input as {"agents": [object.union(agent, change)]}
	}
	every wrong in [{}, {"agents": null}, {"agents": {}}, {"agents": [{}]}, {"agents": [null]}] {
		not tool.approved(_read) with input as wrong
	}
}
