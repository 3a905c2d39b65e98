package admission.limits.media_test

import data.admission.limits.media
import future.keywords.not

_policy := {"media": {"kinds": {"image": {"max_bytes": 100}}, "url": {"max_bytes": 50}}}

_brought := {"media": {"source": "file", "kind": "image", "media_type": "image/png"}, "addresses": []}

_fetched := {
	"media": {
		"source": "url", "kind": "image", "media_type": "image/png",
		"url": {"scheme": "https", "host": "a.example.org", "port": 443},
	},
	"addresses": [{"text": "8.8.8.8"}, {"text": "2606:4700::1"}],
}

test_brought if {
	limits := media.limits with input as _brought with data.policy as _policy
	limits == {"kind": "image", "media_type": "image/png", "max_bytes": 100, "destinations": []}
}

test_fetched if {
	limits := media.limits with input as _fetched with data.policy as _policy
	limits == {"kind": "image", "media_type": "image/png", "max_bytes": 50, "destinations": [{
		"scheme": "https", "host": "a.example.org", "port": 443,
		"addresses": ["8.8.8.8", "2606:4700::1"],
	}]}
}

test_incomplete if {
	requests := [
		{},
		json.remove(_brought, ["/media/source"]),
		json.remove(_brought, ["/media/kind"]),
		json.remove(_brought, ["/media/media_type"]),
		json.remove(_fetched, ["/media/url/host"]),
		json.remove(_fetched, ["/media/url/port"]),
		json.remove(_fetched, ["/media/url/scheme"]),
		json.remove(_fetched, ["/addresses"]),
		json.remove(_fetched, ["/addresses/0/text"]),
		object.union(_fetched, {"addresses": []}),
	]
	every request in requests {
		not media.limits with input as request with data.policy as _policy
	}
}

test_values_missing if {
	every policy in [{}, {"media": {"kinds": {"image": {}}, "url": {}}}, {"media": {"kinds": _policy.media.kinds}}] {
		not media.limits with input as _fetched with data.policy as policy
	}
	not media.limits with input as _brought with data.policy as {"media": {"kinds": {"image": {}}}}
}
