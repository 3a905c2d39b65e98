package admission.limits.model_ref_test

import data.admission.limits.model_ref
import future.keywords.not

_offers := {"connection_modes": ["vault"], "models": {"one": ["large", "shared"], "two": ["shared", "small"]}}

_reference := {"mode": "vault", "model": "large", "provider": "one", "slug": "team", "slug_provider": "one"}

_given(phase, change) := {"phase": phase, "harness": "own", "reference": object.union(_reference, change)}

_kept(request, offers) := object.union(limits.reference, {"harness": limits.harness}) if {
	# regal ignore:external-reference,with-outside-test-context
	limits := model_ref.limits with input as request with data.policy.runners.harnesses as {"own": offers}
}

_whole := {"harness": "own", "mode": "vault", "model": "large", "provider": "one", "slug": "team"}

test_of_a_run_as_it_is if {
	_kept(_given("run", {}), _offers) == _whole
	_kept(_given("run", {"mode": "other"}), {}) == object.union(_whole, {"mode": "other"})
}

test_of_a_form_in_order if {
	_kept(_given("form", {}), _offers) == _whole
	_kept(_given("form", {"mode": ""}), _offers) == object.union(_whole, {"mode": ""})
	_kept(_given("form", {"mode": "other"}), _offers) == object.union(_whole, {"slug": ""})
	_kept(_given("form", {"provider": ""}), _offers) == _whole
	_kept(_given("form", {"model": "small"}), _offers) == object.union(_whole, {
		"model": "small",
		"provider": "two",
		"slug": "",
	})
	_kept(_given("form", {"model": "shared", "provider": "two"}), _offers) == object.union(_whole, {
		"model": "shared",
		"provider": "two",
		"slug": "",
	})
	_kept(_given("form", {"model": "giant"}), _offers) == object.union(_whole, {
		"model": "",
		"provider": "",
		"slug": "",
	})
}

test_of_a_form_that_knows_nothing if {
	bare := {"connection_modes": [], "models": {}}
	given := _given("form", {"mode": "other", "model": "giant"})
	_kept(given, bare) == object.union(_whole, {"mode": "other", "model": "giant"})
}

test_incomplete if {
	every part in ["mode", "model", "provider", "slug"] {
		every phase in ["form", "run"] {
			request := json.remove(_given(phase, {}), [$"reference/{part}"])
			not model_ref.limits with input as request with data.policy.runners.harnesses as {"own": _offers}
		}
	}
	form := json.remove(_given("form", {}), ["reference/slug_provider"])
	not model_ref.limits with input as form with data.policy.runners.harnesses as {"own": _offers}
	every path in ["phase", "harness"] {
		request := json.remove(_given("form", {}), [path])
		not model_ref.limits with input as request with data.policy.runners.harnesses as {"own": _offers}
	}
	not model_ref.limits with input as _given("form", {}) with data.policy as {}
}
