package admission.limits.runner_uri_test

import data.admission.limits.runner_uri
import future.keywords.not

_policy := {"runners": {"uri": {"default": "https://a.example.com/"}}}

test_complete if {
	every source in ["override", "inherited"] {
		request := {"uri": {"source": source, "text": "https://b.example.com/"}}
		limits := runner_uri.limits with input as request with data.policy as _policy
		limits == {"uri": "https://b.example.com/", "encrypted": true, "credentials": false}
	}
	default_limits := runner_uri.limits with input as {"uri": {"source": "default"}} with data.policy as _policy
	default_limits == {"uri": "https://a.example.com/", "encrypted": true, "credentials": false}
}

test_incomplete if {
	requests := [
		{}, {"uri": {}}, {"uri": {"text": "https://b.example.com/"}}, {"uri": {"source": "override"}},
		{"uri": {"source": "override", "text": null}}, {"uri": {"source": null}},
	]
	every request in requests {
		not runner_uri.limits with input as request with data.policy as _policy
	}
}

test_values_missing if {
	not runner_uri.limits with input as {"uri": {"source": "default"}} with data.policy as {}
}

test_plain if {
	policy := {"runners": {"uri": {"default": "http://127.0.0.1:8765/", "unencrypted": ["loopback"]}}}
	limits := runner_uri.limits with input as {"uri": {"source": "default"}} with data.policy as policy
	limits == {"uri": "http://127.0.0.1:8765/", "encrypted": false, "credentials": false}
	every gone in ["runners/uri/unencrypted", "runners/uri/unencrypted/0", "runners/uri/default"] {
		not runner_uri.limits with input as {"uri": {"source": "default"}} with data.policy as json.remove(policy, [gone])
	}
}

test_credentials if {
	policy := {"runners": {"uri": {
		"default": "https://a.example.com/",
		"unencrypted": ["loopback"],
		"credentials": ["https://a.example.com", "http://127.0.0.1:8765"],
	}}}
	listed := runner_uri.limits.credentials with input as {"uri": {"source": "default"}} with data.policy as policy
	listed == true
	plain := {"uri": {"source": "override", "text": "http://127.0.0.1:8765"}}
	listed_plain := runner_uri.limits with input as plain with data.policy as policy
	listed_plain == {"uri": "http://127.0.0.1:8765", "encrypted": false, "credentials": true}
	other := runner_uri.limits.credentials with input as {"uri": {"source": "override", "text": "https://b.example.com/"}}
		with data.policy as policy
	other == false
}
