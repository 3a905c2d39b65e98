package admission.limits.network_test

import data.admission.limits.network
import future.keywords.not

_policy := {"networks": {"fetch": {"max_bytes": 100, "seconds": 5}, "tunnels": {"seconds": 60}}}

_clean := {
	"network": {"purpose": "material", "url": {"digest": "sha256:aa", "host": "a.example.org", "port": 443}},
	"addresses": [{"text": "8.8.8.8"}, {"text": "2606:4700::1"}],
}

test_limits if {
	limits := network.limits with input as _clean with data.policy as _policy
	limits == {
		"purpose": "material", "url_digest": "sha256:aa", "host": "a.example.org", "port": 443,
		"addresses": ["8.8.8.8", "2606:4700::1"],
		"status": 200, "max_bytes": 100, "seconds": 5,
	}
}

test_incomplete if {
	every request in [
		{},
		json.remove(_clean, ["/network/purpose"]),
		object.union(_clean, {"network": {"purpose": "other"}}),
		json.remove(_clean, ["/network/url/digest"]),
		json.remove(_clean, ["/network/url/host"]),
		json.remove(_clean, ["/network/url/port"]),
		json.remove(_clean, ["/addresses"]),
		json.remove(_clean, ["/addresses/0/text"]),
		object.union(_clean, {"addresses": []}),
	] {
		not network.limits with input as request with data.policy as _policy
	}
}

_tunnel := object.union(_clean, {"network": {"purpose": "tunnel"}})

test_limits_of_a_tunnel if {
	limits := network.limits with input as _tunnel with data.policy as _policy
	limits == {
		"purpose": "tunnel", "url_digest": "sha256:aa", "host": "a.example.org", "port": 443,
		"addresses": ["8.8.8.8", "2606:4700::1"], "status": null, "max_bytes": null, "seconds": 60,
	}
	every gone in ["networks", "networks/tunnels", "networks/tunnels/seconds"] {
		not network.limits with input as _tunnel with data.policy as json.remove(_policy, [gone])
	}
}

test_values_missing if {
	every gone in ["networks", "networks/fetch", "networks/fetch/max_bytes", "networks/fetch/seconds"] {
		not network.limits with input as _clean with data.policy as json.remove(_policy, [gone])
	}
}
