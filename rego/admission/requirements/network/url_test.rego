package admission.requirements.network.url_test

import data.admission.lib.origin
import data.admission.requirements.network.url
import future.keywords.not

_policy := {"networks": {"schemes": ["https"], "ports": [443], "hosts": ["a.example.org"]}}

_clean := {"network": {
	"purpose": "material",
	"url": {"scheme": "https", "canonical": true, "host": "a.example.org", "port": 443},
	"allowed_hosts": [{"id": "#0", "name": "a.example.org", "exact": true}],
}}

_url(changes) := object.union(_clean, {"network": {"url": changes}})

test_scheme_safe if {
	url.scheme_safe with input as _clean with data.policy as _policy
	every request in [_url({"scheme": "http"}), _url({"scheme": null}), json.remove(_clean, ["network/url/scheme"]), {}] {
		not url.scheme_safe with input as request with data.policy as _policy
	}
	not url.scheme_safe with input as _clean with data.policy as {"networks": {"schemes": []}}
}

test_canonical if {
	url.canonical with input as _clean with data.policy as _policy
	every request in [
		_url({"canonical": false}),
		_url({"port": 8443}),
		json.remove(_clean, ["network/url/canonical"]),
		json.remove(_clean, ["network/url/port"]),
		{},
	] {
		not url.canonical with input as request with data.policy as _policy
	}
	not url.canonical with input as _clean with data.policy as {"networks": {"ports": []}}
}

test_host_allowlisted if {
	url.host_allowlisted with input as _clean with data.policy as _policy
	url.host_allowlisted with input as _clean with data.policy as {"networks": {"hosts": ["*.example.org"]}}
	every request in [
		_url({"host": "other.example.org"}),
		_url({"host": "b.a.example.org"}),
		_url({"host": "xa.example.org"}),
		_url({"host": null}),
		json.remove(_clean, ["network/url/host"]),
		object.union(_clean, {"network": {"allowed_hosts": []}}),
		object.union(_clean, {"network": {"allowed_hosts": {"a": {"name": "a.example.org"}}}}),
		object.union(_clean, {"network": {"allowed_hosts": [{"name": "*.example.org"}]}}),
		json.remove(_clean, ["network/allowed_hosts"]),
		{},
	] {
		not url.host_allowlisted with input as request with data.policy as _policy
	}
	every policy in [{}, {"networks": {}}, {"networks": {"hosts": []}}, {"networks": {"hosts": ["example.org"]}}] {
		not url.host_allowlisted with input as _clean with data.policy as policy
	}
}

test_host_of_a_tunnel_allowlisted if {
	tunnel := object.union(_clean, {"network": {"purpose": "tunnel"}})
	every hosts in [["a.example.org"], ["*.example.org"]] {
		url.host_allowlisted with input as tunnel with data.policy as {"networks": {"tunnels": {"hosts": hosts}}}
	}
	tunnels := {"networks": {"tunnels": {"hosts": ["a.example.org"]}}}
	every policy in [_policy, {}, {"networks": {"tunnels": {}}}, {"networks": {"tunnels": {"hosts": ["b.example.org"]}}}] {
		not url.host_allowlisted with input as tunnel with data.policy as policy
	}
	every request in [_clean, json.remove(tunnel, ["network/purpose"]), json.remove(tunnel, ["network/allowed_hosts"])] {
		not url.host_allowlisted with input as request with data.policy as tunnels
	}
}

test_host_exact if {
	url.host_exact({"exact": true})
	every host in [{"exact": false}, {"exact": "true"}, {}] {
		not url.host_exact(host)
	}
}

test_no_host_is_not_listed if {
	every wrong in [null, true, 0, [], {}] {
		given := {"network": {"url": {"host": wrong}, "allowed_hosts": [{"name": wrong}]}}
		not url.host_allowlisted with input as given with origin.listed as true
	}
}
