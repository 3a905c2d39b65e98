package admission.requirements.code_execution.profile_test

import data.admission.lib.code_execution_test
import data.admission.requirements.code_execution.profile
import future.keywords.not

_policy := code_execution_test.policy

_run := code_execution_test.run

_without(path) := json.remove(_policy, [path])

_profile(name) := object.union(_run, {"profile": {"stated": true, "value": name}})

test_known if {
	profile.known with input as _run with data.policy as _policy
	profile.known with input as _profile("there") with data.policy as _policy
	not profile.known with input as _profile("nowhere") with data.policy as _policy
	not profile.known with input as {} with data.policy as _policy
	not profile.known with input as _run with data.policy as _without("sandbox/backends/jail")
}

test_admitted if {
	profile.admitted with input as _run with data.policy as _policy
	held := {name |
		some name in ["here", "there", "other", "nowhere", null]
		profile.admitted with input as _profile(name) with data.policy as _policy
	}
	held == {"here", "there"}
	not profile.admitted with input as {} with data.policy as _policy
	every name in ["here", "there"] {
		unstated := object.union(_run, {"profile": {"stated": null, "value": name}})
		not profile.admitted with input as unstated with data.policy as _policy
	}
	not profile.admitted with input as _profile("there") with data.policy as _without("sandbox/profiles/here/alternatives")
	not profile.admitted with input as _profile("here") with data.policy as _without("code/execution/python")
}

test_within_floor if {
	profile.within_floor with input as _run with data.policy as _policy
	profile.within_floor with input as object.union(_run, {"role": "verifier"}) with data.policy as _policy
	not profile.within_floor with input as object.union(_run, {"role": "judge"}) with data.policy as _policy
	not profile.within_floor with input as _profile("low") with data.policy as _policy
	not profile.within_floor with input as {} with data.policy as _policy
	not profile.within_floor with input as _run with data.policy as _without("sandbox/floor")
}

test_no_higher if {
	amount := {"id": "processes", "value": 6}
	profile.no_higher(amount) with input as _run with data.policy as _policy
	not profile.no_higher(amount) with input as object.union(_run, {"role": "verifier"}) with data.policy as _policy
	not profile.no_higher({"id": "processes", "value": 11}) with input as _run with data.policy as _policy
	not profile.no_higher({}) with input as _run with data.policy as _policy
	not profile.no_higher(amount) with input as {} with data.policy as _policy
	not profile.no_higher(amount) with input as _run with data.policy as _without("sandbox/floor/limits/processes")
}
