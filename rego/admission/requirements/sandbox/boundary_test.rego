package admission.requirements.sandbox.boundary_test

import data.admission.lib.boundary
import data.admission.lib.sandbox_test
import data.admission.requirements.sandbox.boundary as requirement
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

_open(name) := object.union(_request, {"boundaries": [one | some one in _request.boundaries; one.boundary != name]})

test_complete if {
	requirement.complete with input as _request
	not requirement.complete with input as object.union(_request, {"required": {"boundaries": [{"id": "files"}]}})
	not requirement.complete with input as {}
}

test_enforced if {
	every name in boundary.names {
		requirement.enforced({"id": name}) with input as _request with data.policy as _policy
		not requirement.enforced({"id": name}) with input as _open(name) with data.policy as _policy
	}
	every needed in [{"id": "luck"}, {"id": null}, {}] {
		not requirement.enforced(needed) with input as _request with data.policy as _policy
	}
	not requirement.enforced({"id": "files"}) with input as _request with data.policy as _without("floor/boundaries/files")
}

test_declared_held if {
	every word, behind in boundary.boundaries_of {
		requirement.declared_held({"id": word}) with input as _request with data.policy as _policy
		every name in behind {
			not requirement.declared_held({"id": word}) with input as _open(name) with data.policy as _policy
		}
	}
	every one in [{"id": "luck"}, {"id": null}, {}] {
		not requirement.declared_held(one) with input as _request with data.policy as _policy
	}
	not requirement.declared_held({"id": "cpu"}) with input as _request with data.policy as _without("profiles/here")
}
