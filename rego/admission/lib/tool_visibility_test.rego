package admission.lib.tool_visibility_test

import data.admission.lib.tool_visibility
import future.keywords.not

_policy := {
	"tool_lookup": {
		"tools": {"read": {"selectors": ["read"]}, "pinned": {"selectors": ["*"]}},
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

_read := {"id": "read", "name": "read", "times": 1}

_pinned := {"id": "pinned", "name": "pinned", "times": 1, "definition_digest": "sha256:a"}

_visible(asked, list) := {tool.id |
	some tool in list
	tool_visibility.visible(tool) with input as {"asked": asked} with data.policy as _policy
}

test_visible if {
	_visible({"policy": "p", "profile": "all"}, [_read, _pinned]) == {"read", "pinned"}
	_visible({"policy": "p", "profile": "some"}, [_read, _pinned]) == {"pinned"}
	_visible({"policy": "q", "profile": "all"}, [_read, _pinned]) == set()
	_visible({"profile": "all"}, [_read, _pinned]) == set()
	_visible({"policy": "p"}, [_read, _pinned]) == set()
	_visible({}, [_read, _pinned]) == set()
}

test_definition if {
	changed := object.union(_pinned, {"definition_digest": "sha256:b"})
	missing := json.remove(_pinned, ["definition_digest"])
	_visible({"policy": "p", "profile": "all"}, [changed, missing]) == set()
	unasked := object.union(_read, {"definition_digest": "sha256:b"})
	_visible({"policy": "p", "profile": "all"}, [unasked]) == {"read"}
}

test_listed_once if {
	every tool in [object.union(_read, {"times": 2}), json.remove(_read, ["times"]), json.remove(_read, ["name"])] {
		_visible({"policy": "p", "profile": "all"}, [tool]) == set()
		not tool_visibility.listed_once(tool)
	}
	tool_visibility.listed_once(_read)
}
