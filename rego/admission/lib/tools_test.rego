package admission.lib.tools_test

import data.admission.lib.tools
import future.keywords.not

_section := {"size": 1, "names": ["s/one"], "conditional": {}, "selectors": {}}

_lookup := {
	"tools": {name: {"selectors": [name], "values": {}} | some name in ["read", "write", "stop", "other"]},
	"profiles": {"both": {"read": true, "write": true, "stop": true}, "empty": {}},
	"policies": {name: {
		"deny": object.union(_section, {"selectors": {"stop": {"always": 0}}}),
		"confirm": object.union(_section, {"selectors": {"write": {"always": 0}}}),
		"allow": object.union(_section, {"selectors": {
			"read": {"by name": {"rules": [0], "size": 1}},
			"write": {"by name": {"rules": [0], "size": 1}},
			"stop": {"by name": {"rules": [0], "size": 1}},
		}}),
	} |
		some name in ["asks", "shows", "hides"]
	},
}

_policy := {
	"tool_lookup": _lookup,
	"tools": {
		"tools": {name: {"side_effects": ["read"]} | some name in ["read", "write", "stop", "other"]},
		"policies": {
			"asks": {"base": "confirm_all", "principals": "any"},
			"shows": {"base": "deny_all_visible", "principals": ["agent"]},
			"hides": {"base": "deny_all", "principals": "any"},
		},
	},
}

_agent := {"caller": {"principal": "agent"}}

_asked := {
	"asks": {"policy": "asks"},
	"shows": {"policy": "shows"},
	"hides": {"policy": "hides"},
	"unknown": {"policy": "unknown"},
	"none": {},
}

test_base if {
	found := {name: base |
		some name, asked in _asked
		base := tools.base(asked) with input as _agent with data.policy as _policy
	}
	found == {
		"asks": "confirm_all",
		"shows": "deny_all_visible",
		"hides": "deny_all",
		"unknown": "deny_all",
		"none": "deny_all",
	}
}

test_base_of_others if {
	every request in [{"caller": {"principal": "other"}}, {"caller": {}}, {}] {
		tools.base(_asked.asks) == "confirm_all" with input as request with data.policy as _policy
		tools.base(_asked.shows) == "deny_all" with input as request with data.policy as _policy
	}
}

test_shown if {
	found := {[policy, tool] |
		some policy in ["asks", "shows", "hides", "unknown", null]
		some tool in ["read", "unknown", null]
		tools.visible({"policy": policy}, tool) with input as _agent with data.policy as _policy
	}
	found == {["asks", "read"], ["shows", "read"]}
}

test_in_profile if {
	found := {[profile, tool] |
		some profile in ["both", "empty", "unknown", null]
		some tool in ["read", "write", "other", "unknown"]
		tools.in_profile({"profile": profile}, tool) with input as _agent with data.policy as _policy
	}
	found == {["both", "read"], ["both", "write"]}
	not tools.in_profile({}, "read") with input as _agent with data.policy as _policy
}

test_policy_known if {
	tools.policy_known({"policy": "asks"}) with data.policy as _policy
	every asked in [{"policy": "unknown"}, {"policy": null}, {}] {
		not tools.policy_known(asked) with data.policy as _policy
	}
}

test_outcome_by_name if {
	found := {[policy, tool]: outcome |
		some policy in ["asks", "shows", "hides", "unknown"]
		some tool in ["read", "write", "stop", "other", "unknown"]
		asked := {"policy": policy, "profile": "both"}
		outcome := tools.outcome_by_name(asked, tool) with input as _agent with data.policy as _policy
	}
	count(found) == 20
	{pair: outcome | some pair, outcome in found; outcome != "deny"} == {
		["asks", "read"]: "allow", ["asks", "write"]: "confirm",
		["shows", "read"]: "allow", ["shows", "write"]: "confirm",
		["hides", "read"]: "allow", ["hides", "write"]: "confirm",
	}
}

test_outcome_of_what_no_rule_names if {
	unruled := json.patch(_policy, [{
		"op": "replace",
		"path": "tool_lookup/policies/asks/allow/selectors",
		"value": {},
	}])
	asked := {"policy": "asks", "profile": "both"}
	tools.outcome_by_name(asked, "read") == "confirm" with input as _agent with data.policy as unruled
	visible := json.patch(unruled, [{"op": "replace", "path": "tools/policies/asks/base", "value": "deny_all_visible"}])
	tools.outcome_by_name(asked, "read") == "deny" with input as _agent with data.policy as visible
}

test_values_missing if {
	asked := {"policy": "asks", "profile": "both"}
	every lost in [
		"tools", "tools/tools", "tools/policies", "tools/policies/asks/principals", "tool_lookup", "tool_lookup/tools/read",
		"tool_lookup/profiles/both", "tool_lookup/policies/asks", "tool_lookup/policies/asks/deny",
		"tool_lookup/policies/asks/confirm",
	] {
		tools.outcome_by_name(asked, "read") == "deny" with input as _agent with data.policy as json.remove(_policy, [lost])
	}
	not tools.visible(asked, "read") with input as _agent with data.policy as {}
	not tools.in_profile(asked, "read") with input as _agent with data.policy as {}
	not tools.known("read") with data.policy as {}
}

test_base_is_one_of_those_there_are if {
	odd := json.patch(_policy, [{"op": "replace", "path": "tools/policies/asks/base", "value": "allow_all"}])
	tools.base(_asked.asks) == "deny_all" with input as _agent with data.policy as odd
}

test_principals_are_a_list if {
	named := json.patch(_policy, [{"op": "replace", "path": "tools/policies/shows/principals", "value": {"a": "agent"}}])
	not tools.principal_admitted(_asked.shows) with input as _agent with data.policy as named
}

test_explanation if {
	explanation := tools.explanation with input as {"context": {}, "call": {"tool": "read"}} with data.policy as _policy
	explanation.section == "none"
}
