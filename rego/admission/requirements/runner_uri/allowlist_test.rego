package admission.requirements.runner_uri.allowlist_test

import data.admission.requirements.runner_uri.allowlist
import future.keywords.not

_policy := {"runners": {"uri": {"default": "https://a.example.com/", "allowlist": ["https://b.example.com"]}}}

_uri := {"source": "override", "canonical": true, "origin": "https://b.example.com", "text": "https://b.example.com/"}

_requests := {
	"override": {"uri": _uri},
	"inherited": {"uri": object.union(_uri, {"source": "inherited"})},
	"default": {"uri": {"source": "default"}},
	"other origin": {"uri": object.union(_uri, {"origin": "https://b.example.com.evil.org"})},
	"inherited from elsewhere": {"uri": object.union(_uri, {"source": "inherited", "origin": "https://c.example.com"})},
	"other source": {"uri": object.union(_uri, {"source": "header"})},
	"not canonical": {"uri": object.union(_uri, {"canonical": false})},
	"no word on canonical": {"uri": json.remove(_uri, ["canonical"])},
	"no origin": {"uri": json.remove(_uri, ["origin"])},
	"no source": {"uri": json.remove(_uri, ["source"])},
	"no address": {},
}

test_allowlisted if {
	held := {name |
		some name, request in _requests
		allowlist.allowlisted with input as request with data.policy as _policy
	}
	held == {"override", "inherited", "default"}
}

test_values_missing if {
	every policy in [{}, {"runners": {"uri": {"allowlist": []}}}] {
		not allowlist.allowlisted with input as _requests.override with data.policy as policy
		not allowlist.allowlisted with input as _requests.inherited with data.policy as policy
	}
}

test_confidential if {
	policy := {"runners": {"uri": {"default": "http://127.0.0.1:8765/", "unencrypted": ["loopback"]}}}
	held := {text |
		some text in [
			"https://b.example.com/", "http://127.0.0.1/", "http://localhost:8765/a", "http://[::1]:1/",
			"http://b.example.com/", "http://127.0.0.1.example.com/", "http://127.0.0.10/", "http://127.0.0.1:1@b/",
			"http://127.0.0.1:x/", "http://localhostess:1/", "ftp://127.0.0.1/", "127.0.0.1:8765", "",
		]
		allowlist.confidential with input as {"uri": {"source": "override", "text": text}} with data.policy as policy
	}
	held == {"https://b.example.com/", "http://127.0.0.1/", "http://localhost:8765/a", "http://[::1]:1/"}
	allowlist.confidential with input as _requests["default"] with data.policy as policy
	every gone in ["runners", "runners/uri", "runners/uri/default", "runners/uri/unencrypted"] {
		not allowlist.confidential with input as _requests["default"] with data.policy as json.remove(policy, [gone])
	}
	not allowlist.confidential with input as {"uri": {"source": "override"}} with data.policy as policy
}
