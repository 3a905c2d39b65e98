package admission.requirements.model_ref.reference_test

import data.admission.requirements.model_ref.reference
import future.keywords.not

_policy := {"runners": {"harnesses": {"own": {
	"connection_modes": ["vault"],
	"models": {"one": ["large"], "two": ["small"]},
}}}}

_reference := {"mode": "vault", "model": "large", "provider": "one", "slug": "team", "slug_provider": "one"}

_run(change) := {"phase": "run", "harness": "own", "reference": object.union(_reference, change)}

_held(request, policy) := found if {
	# regal ignore:external-reference,with-outside-test-context
	found := _consistent with input as request with data.policy as policy
}

_consistent contains "harness" if reference.harness_admitted

_consistent contains "mode" if reference.mode_consistent

_consistent contains "model" if reference.model_consistent

_consistent contains "provider" if reference.provider_consistent

_consistent contains "slug" if reference.slug_consistent

_all := {"harness", "mode", "model", "provider", "slug"}

test_of_a_run if {
	_held(_run({}), _policy) == _all
	_held(_run({"mode": "", "model": "", "provider": "", "slug": ""}), _policy) == _all
	_held(_run({"mode": "other"}), _policy) == _all - {"mode"}
	_held(_run({"model": "giant"}), _policy) == _all - {"model", "provider"}
	_held(_run({"model": "small"}), _policy) == _all - {"provider"}
	_held(_run({"model": ""}), _policy) == _all - {"provider"}
	_held(_run({"provider": ""}), _policy) == _all - {"slug"}
	_held(_run({"slug_provider": "two"}), _policy) == _all - {"slug"}
	_held(_run({"provider": "nobody", "slug_provider": "nobody"}), _policy) == _all - {"provider", "slug"}
	_held(object.union(_run({}), {"harness": "other"}), _policy) == set()
}

test_of_a_form if {
	form := {"phase": "form", "harness": "own", "reference": object.union(_reference, {"model": "giant", "mode": "other"})}
	_held(form, _policy) == _all
	_held(object.union(form, {"harness": "other"}), _policy) == _all - {"harness"}
	_held(object.union(form, {"phase": null}), _policy) == {"harness", "slug"}
}

test_facts_missing if {
	every part in ["mode", "model", "provider"] {
		held := _held(json.remove(_run({}), [$"reference/{part}"]), _policy)
		not part in held
	}
	every wrong in [null, true, 0, [], {}] {
		held := _held(_run({"model": wrong, "provider": ""}), _policy)
		not "provider" in held
	}
	_held(json.remove(_run({}), ["reference/slug_provider"]), _policy) == _all - {"slug"}
	_held(json.remove(_run({}), ["harness"]), _policy) == set()
	_held({"harness": "own"}, _policy) == {"harness"}
	_held({}, _policy) == set()
}

test_values_missing if {
	every policy in [{}, {"runners": {}}, {"runners": {"harnesses": {}}}] {
		_held(_run({}), policy) == set()
	}
	_held(_run({}), {"runners": {"harnesses": {"own": {}}}}) == {"harness"}
}
