package admission.requirements.administration.stop_test

import data.admission.requirements.administration.stop
import future.keywords.not

everything := {"id": "s1", "scope": "all", "name": ""}

test_while_everything_is_stopped_acts_only_take_away if {
	every act in ["stop", "lift_stop", "end_agent", "refuse_approval", "revoke_token", "revoke_prefix"] {
		stop.grants_nothing(everything) with input as {"act": act}
	}
	every act in ["grant_approval", "issue_token", "approve_prefix", "", null] {
		not stop.grants_nothing(everything) with input as {"act": act}
		stop.grants_nothing(object.union(everything, {"scope": "tool"})) with input as {"act": act}
		not stop.grants_nothing(object.union(everything, {"scope": "tools"})) with input as {"act": act}
	}
	not stop.grants_nothing({}) with input as {"act": "stop"}
	not stop.grants_nothing(everything) with input as {}
}

tools := {"tools": {"tools": {"http_get": {"groups": []}}}}

test_a_tool_to_be_stopped_has_a_row if {
	asked := {"act": "stop", "stop": {"scope": "tool", "name": "http_get"}}
	stop.tool_known with input as asked with data.policy as tools
	not stop.tool_known with input as asked with data.policy as {}
	every wrong in ["htpt_get", "", null, {}] {
		given := {"act": "stop", "stop": {"scope": "tool", "name": wrong}}
		not stop.tool_known with input as given with data.policy as tools
	}
	not stop.tool_known with input as {"act": "stop", "stop": {}} with data.policy as tools
}

test_no_other_act_and_scope_needs_one if {
	every scope in ["all", "principal"] {
		stop.tool_known with input as {"act": "stop", "stop": {"scope": scope, "name": "bot"}}
	}
	every act in ["lift_stop", "end_agent", "issue_token", "approve_prefix", "grant_approval"] {
		stop.tool_known with input as {"act": act}
	}
	not stop.tool_known with input as {}
}

test_only_a_stop_of_a_tool_needs_a_tool if {
	every scope in ["all", "principal", "tool"] {
		every act in ["other", null] {
			other := {"act": act, "stop": {"scope": scope, "name": "http_get"}}
			not stop.tool_known with input as other with data.policy as tools
		}
	}
	every scope in ["other", null] {
		other := {"act": "stop", "stop": {"scope": scope, "name": "http_get"}}
		not stop.tool_known with input as other with data.policy as tools
	}
}
