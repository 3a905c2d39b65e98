package admission.requirements.code_execution.language_test

import data.admission.lib.code_execution_test
import data.admission.requirements.code_execution.language
import future.keywords.not

_policy := code_execution_test.policy

_run := code_execution_test.run

_without(path) := json.remove(_policy, [path])

_in(word) := object.union(_run, {"action": {"language": {"value": word}}})

test_language if {
	admitted := {word |
		some word in ["python", "javascript", "ruby", "Python", null]
		language.language_admitted with input as _in(word) with data.policy as _policy
	}
	admitted == {"python", "javascript"}
	executable := {word |
		some word in ["python", "javascript", "ruby", "Python", null]
		language.language_executable with input as _in(word) with data.policy as _policy
	}
	executable == {"python"}
	not language.language_admitted with input as {} with data.policy as _policy
	not language.language_admitted with input as _run with data.policy as _without("code/languages")
	not language.language_executable with input as {} with data.policy as _policy
	not language.language_executable with input as _run with data.policy as _without("code/execution/python")
}

test_the_scan_is_of_the_language_that_runs if {
	not language.scan_clean with input as _in("javascript") with data.policy as _policy
	not language.scan_clean with input as _in(null) with data.policy as _policy
}

test_scan_clean if {
	language.scan_clean with input as _run with data.policy as _policy
	every change in [{"parsed": false}, {"complete": false}, {"network_literals": 1}, {"language": "javascript"}] {
		not language.scan_clean with input as object.union(_run, {"scan": change}) with data.policy as _policy
	}
	not language.scan_clean with input as json.remove(_run, ["scan"]) with data.policy as _policy
	not language.scan_clean with input as _run with data.policy as _without("code/scan/python")
}

_found := object.union(_run, {
	"profile": {"stated": true, "value": "loose"},
	"scan": {"imports": [{"id": "os", "kind": "module"}], "network_literals": 1},
})

test_an_advisory_scan if {
	language.scan_clean with input as _found with data.policy as _policy
	reads := object.union(_found, {"scan": {"input_calls": 2, "input_values": 1}})
	language.scan_clean with input as reads with data.policy as _policy
	every profile in ["here", "there", "other", null] {
		bound := object.union(_found, {"profile": {"value": profile}})
		not language.scan_clean with input as bound with data.policy as _policy
	}
	every scan in [
		{"parsed": false}, {"complete": false}, {"language": "javascript"}, {"network_literals": null},
		{"encodings": [{"id": "utf-7"}]}, {"input_calls": null}, {"imports": null}, {"imports": [{"kind": "module"}]},
	] {
		not language.scan_clean with input as object.union(_found, {"scan": scan}) with data.policy as _policy
	}
	not language.scan_clean with input as object.union(_found, {"probes": []}) with data.policy as _policy
	open := object.union(_found, {"boundaries": array.slice(_run.boundaries, 1, 99)})
	not language.scan_clean with input as open with data.policy as _policy
	not language.scan_clean with input as _found with data.policy as _without("sandbox/profiles/loose/scan")
}

test_a_scan_of_another_language if {
	both := object.union(_policy, {"code": {"scan": {"javascript": _policy.code.scan.python}}})
	every one in [_run, _found] {
		language.scan_clean with input as one with data.policy as both
		other := object.union(one, {"scan": {"language": "javascript"}})
		not language.scan_clean with input as other with data.policy as both
	}
}
