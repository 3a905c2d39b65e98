package admission.requirements.tool_call.flow_test

import data.admission.requirements.tool_call.flow
import future.keywords.not

_policy := {"tools": {"flows": [["untrusted", "private"], ["untrusted", "outward"], ["private", "outward"]]}}

_run(touched) := [{"id": "run-1", "touched": touched}]

_requests := {
	"adds nothing": {"adds": [], "flows": []},
	"first": {"adds": ["private"], "flows": _run([])},
	"second": {"adds": ["outward"], "flows": _run(["private"])},
	"third": {"adds": ["untrusted"], "flows": _run(["private", "outward"])},
	"two at once after one": {"adds": ["untrusted", "outward"], "flows": _run(["private"])},
	"all at once": {"adds": ["untrusted", "private", "outward"], "flows": _run([])},
	"what was touched before": {"adds": ["outward"], "flows": _run(["private", "outward", "untrusted"])},
	"no run": {"adds": ["private"], "flows": []},
	"two runs": {"adds": ["private"], "flows": array.concat(_run([]), _run([]))},
	"flows unknown": {"adds": ["private"]},
	"touched unknown": {"adds": ["private"], "flows": [{"id": "run-1"}]},
	"touched is null": {"adds": ["private"], "flows": _run(null)},
	"adds unknown": {"flows": _run([])},
	"adds is null": {"adds": null, "flows": _run([])},
	"adds is text": {"adds": "", "flows": _run([])},
	"adds is an object": {"adds": {}, "flows": _run(["private"])},
	"touched is an object": {"adds": ["private"], "flows": _run({"x": "private"})},
	"nothing": {},
}

test_run_named if {
	held := {name | some name, request in _requests; flow.run_named with input as request}
	held == {
		"adds nothing", "first", "second", "third", "two at once after one", "all at once", "what was touched before",
		"adds unknown", "adds is null", "adds is text", "adds is an object",
	}
	every wrong in [null, true, 0, [], {}] {
		not flow.run_named with input as {"adds": ["private"], "flows": [{"id": wrong, "touched": []}]}
	}
}

test_only_all_kinds_were_touched_before if {
	one_of_two := {"adds": ["private", "outward"], "flows": _run(["private"])}
	not flow.flow_admitted with input as one_of_two with data.policy as {}
}

test_flow_admitted if {
	held := {name |
		some name, request in _requests
		flow.flow_admitted with input as request with data.policy as _policy
	}
	held == {"adds nothing", "first", "second", "what was touched before", "two runs"}
	without := {name | some name, request in _requests; flow.flow_admitted with input as request with data.policy as {}}
	without == {"adds nothing", "what was touched before"}
}
