package admission.requirements.tool_visibility.tool_test

import data.admission.requirements.tool_visibility.tool
import future.keywords.not

_policy := {
	"tool_lookup": {
		"tools": {"read": {"selectors": ["*"]}, "pinned": {"selectors": ["*"]}},
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

_read := {"id": "read", "name": "read", "times": 1}

_holds("known", one) if tool.tool_known(one)

_holds("shown", one) if tool.tool_shown(one)

_holds("in_profile", one) if tool.tool_in_profile(one)

_holds("as_pinned", one) if tool.as_pinned(one)

_holds("listed_once", one) if tool.listed_once(one)

_holding(one, asked) := {name |
	some name in _all
	_holds(name, one) with input as {"asked": asked} with data.policy as _policy
}

_all := {"known", "shown", "in_profile", "as_pinned", "listed_once"}

test_all_hold if _holding(_read, {"policy": "p", "profile": "all"}) == _all

test_each_fails_alone if {
	_holding(_read, {"policy": "q", "profile": "all"}) == _all - {"shown"}
	_holding(_read, {"profile": "all"}) == _all - {"shown"}
	_holding(_read, {"policy": "p", "profile": "nothing"}) == _all - {"in_profile"}
	_holding(_read, {"policy": "p"}) == _all - {"in_profile"}
	_holding(object.union(_read, {"times": 2}), {"policy": "p", "profile": "all"}) == _all - {"listed_once"}
	pinned := {"id": "pinned", "name": "pinned", "times": 1}
	_holding(pinned, {"policy": "p", "profile": "all"}) == _all - {"as_pinned"}
	other := {"id": "Read", "name": "Read", "times": 1}
	_holding(other, {"policy": "p", "profile": "all"}) == {"listed_once"}
}

test_without_a_name if {
	_holding({"id": "#0", "times": 1}, {"policy": "p", "profile": "all"}) == set()
	_holding({}, {}) == set()
}
