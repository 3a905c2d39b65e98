package admission.requirements.llm.provider_test

import data.admission.requirements.llm.provider
import future.keywords.not

_policy := {
	"llm": {"providers": {"a": {"host": "a.example", "port": 443}}},
	"addresses": {
		"public": [{"family": "ipv4", "cidr": "0.0.0.0/0"}],
		"refused": [{"cidr": "10.0.0.0/8"}],
	},
}

_one := {"text": "8.8.8.8", "family": "ipv4", "isatap": false, "scoped": false}

_clean := {
	"llm": {
		"target": "a.example",
		"url": {"scheme": "https", "canonical": true, "host": "a.example", "port": 443},
	},
	"missing": [],
	"addresses": [_one],
}

_url(changes) := object.union(_clean, {"llm": {"url": changes}})

test_configured if {
	provider.configured with input as _clean
	provider.variables_set with input as _clean
	every request in [object.union(_clean, {"missing": [{"id": "KEY"}]}), {"missing": null}, {"missing": {}}, {}] {
		not provider.configured with input as request
		not provider.variables_set with input as request
	}
}

test_encrypted if {
	provider.encrypted with input as _clean
	every request in [_url({"scheme": "http"}), _url({"scheme": null}), json.remove(_clean, ["llm/url/scheme"]), {}] {
		not provider.encrypted with input as request
	}
}

test_canonical if {
	provider.canonical with input as _clean
	every request in [_url({"canonical": false}), _url({"canonical": "true"}), json.remove(_clean, ["llm/url"]), {}] {
		not provider.canonical with input as request
	}
}

test_target_configured if {
	provider.target_configured with input as _clean
	every request in [
		object.union(_clean, {"llm": {"target": "b.example"}}),
		object.union(_clean, {"llm": {"target": null, "url": {"host": null}}}),
		json.remove(_clean, ["llm/target"]),
		json.remove(_clean, ["llm/url/host"]),
		{},
	] {
		not provider.target_configured with input as request
	}
}

test_provider_admitted if {
	provider.provider_admitted with input as _clean with data.policy as _policy
	every request in [_url({"host": "b.example"}), _url({"port": 8443}), {}] {
		not provider.provider_admitted with input as request with data.policy as _policy
	}
	not provider.provider_admitted with input as _clean with data.policy as {}
}

test_known if {
	provider.known with input as _clean
	every request in [{"addresses": []}, {"addresses": {"x": 1}}, {}] {
		not provider.known with input as request
	}
}

test_remote if {
	provider.remote(_one) with data.policy as _policy
	every one in [object.union(_one, {"text": "10.0.0.1"}), object.remove(_one, ["text"]), {}] {
		not provider.remote(one) with data.policy as _policy
	}
	not provider.remote(_one) with data.policy as {}
}
