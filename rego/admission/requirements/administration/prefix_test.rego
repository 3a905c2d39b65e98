package admission.requirements.administration.prefix_test

import data.admission.requirements.administration.prefix
import future.keywords.not

_policy := {"administration": {"prefix_seconds_max": 100}}

# regal ignore:line-length
_clean := {"act": "approve_prefix", "prefix": {"principal": "agent-7", "seconds": 100}, "caller": {"principal": "user:ana"}}

_with(change) := object.union(_clean, {"prefix": change})

_others := ["grant_approval", "refuse_approval", "issue_token", "revoke_token", "revoke_prefix"]

_wrong := [null, true, 0, "", [], {}]

test_approver_differs if {
	prefix.approver_differs with input as _clean
	not prefix.approver_differs with input as _with({"principal": "user:ana"})
	not prefix.approver_differs with input as _with({"principal": " user:ana"})
	every wrong in _wrong {
		not prefix.approver_differs with input as _with({"principal": wrong})
		not prefix.approver_differs with input as object.union(_clean, {"caller": {"principal": wrong}})
	}
}

test_prefix_ends if {
	prefix.prefix_ends with input as _clean with data.policy as _policy
	every seconds in [101, 0, -1, null, true, "", [], {}] {
		not prefix.prefix_ends with input as _with({"seconds": seconds}) with data.policy as _policy
	}
	every policy in [{}, {"administration": {}}] { not prefix.prefix_ends with input as _clean with data.policy as policy }
}

test_tool_known if {
	tools := {
		"shell": {"arguments": {"cwd": "path", "command": "command"}},
		"process": {"arguments": {"argv": "argv"}},
		"own": {"arguments": {"steps": "data"}},
		"files_read": {"arguments": {"path": "path", "text": "text"}},
		"clock": {"arguments": {}},
		"wrong": {"arguments": {"command": ["command"]}},
		"broken": "none",
	}
	policy := {"tools": {"tools": tools}}
	every tool in ["shell", "process", "own"] {
		prefix.tool_known with input as _with({"tool": tool}) with data.policy as policy
	}
	every tool in ["shel", "files_read", "clock", "wrong", "broken", null, [], {}] {
		not prefix.tool_known with input as _with({"tool": tool}) with data.policy as policy
	}
	not prefix.tool_known with input as _clean with data.policy as policy
	not prefix.tool_known with input as _with({"tool": "shell"}) with data.policy as {}
	every act in _others { prefix.tool_known with input as {"act": act} with data.policy as {} }
	every act in _wrong {
		not prefix.tool_known with input as object.union(_with({"tool": "shell"}), {"act": act}) with data.policy as policy
	}
}

test_an_act_that_is_none_approves_none if {
	every act in _wrong {
		not prefix.approver_differs with input as object.union(_clean, {"act": act})
		not prefix.prefix_ends with input as object.union(_clean, {"act": act}) with data.policy as _policy
	}
	many := {"administration": {"prefix_seconds_max": "many"}}
	not prefix.prefix_ends with input as _with({"seconds": "1"}) with data.policy as many
}

test_other_acts_approve_no_prefix if {
	every act in _others {
		prefix.approver_differs with input as {"act": act}
		prefix.prefix_ends with input as {"act": act}
	}
	every act in ["approve_prefix", null, true, 0, "", [], {}] {
		not prefix.approver_differs with input as {"act": act}
		not prefix.prefix_ends with input as {"act": act}
	}
}
