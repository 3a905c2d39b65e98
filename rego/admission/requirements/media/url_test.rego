package admission.requirements.media.url_test

import data.admission.requirements.media.url
import future.keywords.not

_values := {
	"allow_url_media_sources": true,
	"url": {"schemes": ["https"], "hosts": ["a.example.org"], "max_bytes": 100},
}

_policy := {"media": _values, "networks": {"ports": [443]}}

_url := {"canonical": true, "scheme": "https", "host": "a.example.org", "port": 443}

_by_url := {"media": {"source": "url", "url": _url}}

_brought := {"media": {"source": "base64"}}

_with(changes) := {"media": {"source": "url", "url": object.union(_url, changes)}}

_without(name) := {"media": {"source": "url", "url": object.remove(_url, [name])}}

test_admitted if {
	every request in [_by_url, _brought] {
		url.admitted with input as request with data.policy as _policy
	}
	not url.admitted with input as {"media": {"url": _url}} with data.policy as _policy
}

test_admitted_by_a_complete_policy_only if {
	changes := [
		{"allow_url_media_sources": false},
		{"allow_url_media_sources": null},
		{"url": {"schemes": []}},
		{"url": {"hosts": []}},
		{"url": {"max_bytes": 0}},
	]
	every change in changes {
		policy := {"media": object.union(_values, change)}
		not url.admitted with input as _by_url with data.policy as policy
		url.admitted with input as _brought with data.policy as policy
	}
	every path in ["/allow_url_media_sources", "/url", "/url/schemes", "/url/hosts", "/url/max_bytes"] {
		policy := {"media": json.remove(_values, [path])}
		not url.admitted with input as _by_url with data.policy as policy
	}
}

test_scheme_allowlisted if {
	every request in [_by_url, _brought] {
		url.scheme_allowlisted with input as request with data.policy as _policy
	}
	every request in [_with({"scheme": "http"}), _with({"scheme": null}), _without("scheme"), {"media": {"url": _url}}] {
		not url.scheme_allowlisted with input as request with data.policy as _policy
	}
	not url.scheme_allowlisted with input as _by_url with data.policy as {}
}

test_canonical if {
	every request in [_by_url, _brought] {
		url.canonical with input as request with data.policy as _policy
	}
	requests := [
		_with({"canonical": false}), _with({"port": 8443}), _with({"port": null}),
		_without("canonical"), _without("port"), {"media": {"url": _url}},
	]
	every request in requests {
		not url.canonical with input as request with data.policy as _policy
	}
	not url.canonical with input as _by_url with data.policy as {}
}

test_host_allowlisted if {
	every request in [_by_url, _brought] {
		url.host_allowlisted with input as request with data.policy as _policy
	}
	requests := [
		_with({"host": "b.a.example.org"}), _with({"host": "example.org"}), _with({"host": null}),
		_without("host"), {"media": {"url": _url}},
	]
	every request in requests {
		not url.host_allowlisted with input as request with data.policy as _policy
	}
	not url.host_allowlisted with input as _by_url with data.policy as {}
}
