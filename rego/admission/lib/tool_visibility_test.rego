package admission.lib.tool_visibility_test

import data.admission.lib.tool_visibility
import future.keywords.not

_policy := {
	"results": {"markers": {"phrases": [], "tokens": []}},
	"tool_lookup": {
		"tools": {"read": {"selectors": ["read"], "values": {}}, "pinned": {"selectors": ["*"], "values": {}}},
		"profiles": {"all": {"read": true, "*": true}, "some": {"*": true}},
	},
	"tools": {
		"tools": {"read": {"definition": "none"}, "pinned": {"definition": "sha256:a"}},
		"policies": {
			"p": {"base": "confirm_all", "principals": "any"},
			"q": {"base": "deny_all", "principals": "any"},
		},
	},
}

_read := {"id": "read", "name": "read", "occurrences": 1, "hidden": 0, "instructions": 0}

_pinned := {
	"id": "pinned",
	"name": "pinned",
	"occurrences": 1,
	"definition_digest": "sha256:a",
	"hidden": 0,
	"instructions": 0,
}

_all := {"policy": "p", "profile": "all"}

_lists := {
	"all": [_all, _read, _pinned],
	"some": [{"policy": "p", "profile": "some"}, _read, _pinned],
	"hidden": [{"policy": "q", "profile": "all"}, _read, _pinned],
	"no policy": [{"profile": "all"}, _read, _pinned],
	"no profile": [{"policy": "p"}, _read, _pinned],
	"nothing asked": [{}, _read, _pinned],
	"another definition": [_all, _read, object.union(_pinned, {"definition_digest": "sha256:b"})],
	"no definition": [_all, _read, json.remove(_pinned, ["definition_digest"])],
	"a definition that is not asked for": [_all, object.union(_read, {"definition_digest": "sha256:b"}), _pinned],
	"listed twice": [_all, object.union(_read, {"occurrences": 2}), _pinned],
	"nobody counted": [_all, json.remove(_read, ["occurrences"]), _pinned],
	"no name": [_all, json.remove(_read, ["name"]), _pinned],
	"instructions": [_all, object.union(_read, {"instructions": 1}), _pinned],
	"hidden characters": [_all, object.union(_read, {"hidden": 1}), _pinned],
	"nobody looked": [_all, json.remove(_read, ["hidden"]), _pinned],
}

test_visible if {
	found := {name: ids |
		some name, [asked, first, second] in _lists
		ids := {tool.id |
			some tool in [first, second]
			tool_visibility.visible(tool) with input as {"context": asked, "stops": [], "agents": []} with data.policy as _policy
		}
	}
	found == {
		"all": {"read", "pinned"},
		"some": {"pinned"},
		"hidden": set(),
		"no policy": set(),
		"no profile": set(),
		"nothing asked": set(),
		"another definition": {"read"},
		"no definition": {"read"},
		"a definition that is not asked for": {"read", "pinned"},
		"listed twice": {"pinned"},
		"nobody counted": {"pinned"},
		"no name": {"pinned"},
		"instructions": {"pinned"},
		"hidden characters": {"pinned"},
		"nobody looked": {"pinned"},
	}
}

test_stops_and_approved_agents if {
	rows := [
		[{"stops": [{"scope": "tool", "name": "read"}]}, {"pinned"}],
		[{"stops": [{"scope": "tool", "name": "read"}, {"scope": "tool", "name": "pinned"}]}, set()],
		[{"stops": [{"scope": "principal"}, {"scope": "tool", "name": "other"}]}, {"read", "pinned"}],
		[{"stops": [{"scope": "tool", "name": null}]}, set()],
		[{"stops": null}, set()],
		[{"agents": [{"active": true, "tools": ["read", "pinned"]}]}, {"read", "pinned"}],
		[{"agents": [{"active": true, "tools": ["read"]}]}, {"read"}],
		[{"agents": [{"active": true, "tools": {"0": "read"}}]}, set()],
		[{"agents": [{"active": false, "tools": ["read"]}]}, set()],
		[{"agents": [{"active": true, "tools": ["read"]}, {"active": true, "tools": []}]}, set()],
		[{"agents": null}, set()],
	]
	found := [ids |
		some row in rows
		request := object.union({"context": _all, "stops": [], "agents": []}, row[0])
		ids := {tool.id |
			some tool in [_read, _pinned]
			tool_visibility.visible(tool) with input as request with data.policy as _policy
		}
	]
	found == [row[1] | some row in rows]
}
