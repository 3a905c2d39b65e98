package admission.requirements.source.address_test

import data.admission.lib.origin
import data.admission.requirements.source.address
import future.keywords.not

_policy := {"networks": {"schemes": ["https"], "ports": [443], "hosts": ["data.example.org", "other.example.org", ""]}}

_url := {"canonical": true, "scheme": "https", "host": "data.example.org", "port": 443}

_clean := {"kind": "external", "remote": true, "url": _url}

_fixture := {"kind": "fixture", "remote": false}

_with(url) := object.union(_clean, {"url": url})

test_canonical if {
	records := {
		"external": _clean,
		"fixture": _fixture,
		"not canonical": {"kind": "external", "remote": true, "url": {"canonical": false}},
		"canonical is text": _with({"canonical": "true"}),
		"canonical missing": json.remove(_clean, ["url/canonical"]),
		"other scheme": _with({"scheme": "http"}),
		"scheme missing": json.remove(_clean, ["url/scheme"]),
		"other port": _with({"port": 8443}),
		"port is text": _with({"port": "443"}),
		"port missing": json.remove(_clean, ["url/port"]),
		"no address": json.remove(_clean, ["url"]),
		"no kind": json.remove(_clean, ["kind"]),
	}
	held := {name | some name, record in records; address.canonical(record) with data.policy as _policy}
	held == {"external", "fixture"}
}

test_values_missing if {
	every gone in ["networks", "networks/schemes", "networks/ports", "networks/schemes/0", "networks/ports/0"] {
		not address.canonical(_clean) with data.policy as json.remove(_policy, [gone])
	}
}

_request(hosts) := {"bundle": {"network": {"allowed_hosts": hosts}}}

test_host_allowlisted if {
	records := {
		"external": _clean,
		"fixture": _fixture,
		"subdomain": _with({"host": "www.data.example.org"}),
		"parent": _with({"host": "example.org"}),
		"upper case": _with({"host": "DATA.example.org"}),
		"empty host": _with({"host": ""}),
		"host is null": _with({"host": null}),
		"host missing": json.remove(_clean, ["url/host"]),
		"no kind": json.remove(_clean, ["kind"]),
	}
	held := {name |
		some name, record in records
		address.host_allowlisted(record) with input as _request(["other.example.org", "data.example.org", "", null])
			with data.policy as _policy
	}
	held == {"external", "fixture"}
}

test_host_allowlisted_by_the_organization_too if {
	bundle := _request(["other.example.org", "data.example.org"])
	policy := {"networks": {"hosts": ["data.example.org", null]}}
	address.host_allowlisted(_clean) with input as bundle with data.policy as policy
	every host in ["other.example.org", "www.data.example.org", null] {
		not address.host_allowlisted(_with({"host": host})) with input as bundle with data.policy as policy
	}
	every gone in ["networks", "networks/hosts", "networks/hosts/0"] {
		less := json.remove(policy, [gone])
		not address.host_allowlisted(_clean) with input as bundle with data.policy as less
		address.host_allowlisted(_fixture) with input as bundle with data.policy as less
	}
}

test_empty_allowlist if {
	every request in [_request([]), _request(null), _request({}), _request("data.example.org"), {}] {
		not address.host_allowlisted(_clean) with input as request with data.policy as _policy
		address.host_allowlisted(_fixture) with input as request with data.policy as _policy
	}
}

test_no_host_is_not_listed if {
	every wrong in [null, true, 0, [], {}] {
		not address.host_allowlisted(_with({"host": wrong})) with input as _request([wrong]) with origin.listed as true
	}
}
