package admission.requirements.sandbox.profile_test

import data.admission.lib.sandbox_test
import data.admission.requirements.sandbox.profile
import future.keywords.not

_policy := sandbox_test.policy

_request := object.union(sandbox_test.facts, {
	"profile": "here",
	"backend": {"stated": false},
	"declared": [],
	"command": {"stated": false, "text": false},
	"egress": false,
})

_without(path) := {"sandbox": json.remove(_policy.sandbox, [path])}

_profile(name) := object.union(_request, {"profile": name})

test_known if {
	held := {name |
		some name in ["here", "low", "nowhere", null]
		profile.known with input as _profile(name) with data.policy as _policy
	}
	held == {"here", "low"}
	not profile.known with input as {} with data.policy as _policy
	not profile.known with input as _request with data.policy as _without("backends/jail")
}

test_within_floor if {
	held := {name |
		some name in ["here", "low", "nowhere", null]
		profile.within_floor with input as _profile(name) with data.policy as _policy
	}
	held == {"here"}
	not profile.within_floor with input as {} with data.policy as _policy
	not profile.within_floor with input as _request with data.policy as _without("floor")
}

test_backend_as_stated if {
	backends := {
		"none": {"stated": false}, "same": {"stated": true, "value": "jail"}, "other": {"stated": true, "value": "process"},
		"lost": {"stated": true}, "null": {"stated": true, "value": null}, "unknown": {"stated": null},
		"same and unknown": {"stated": null, "value": "jail"}, "nothing": {},
	}
	held := {name |
		some name, backend in backends
		profile.backend_as_stated with input as {"profile": "here", "backend": backend} with data.policy as _policy
	}
	held == {"none", "same"}
	not profile.backend_as_stated with input as {"profile": "here", "backend": backends.same}
		with data.policy as _without("profiles/here")
}

test_no_higher if {
	profile.no_higher({"id": "processes", "value": 10}) with input as _request with data.policy as _policy
	not profile.no_higher({"id": "processes", "value": 11}) with input as _request with data.policy as _policy
	not profile.no_higher({"id": "processes"}) with input as _request with data.policy as _policy
	not profile.no_higher({"id": "processes", "value": 1}) with input as {} with data.policy as _policy
	not profile.no_higher({"id": "processes", "value": 1}) with input as _request with data.policy as {}
}
