package admission.lib.fetch_test

import data.admission.lib.fetch
import future.keywords.not

test_status if fetch.status == 200

test_listed if {
	policy := {"networks": {"hosts": ["a.example.org"], "tunnels": {"hosts": ["b.example.org", "*.c.example.org"]}}}
	held := {[purpose, host] |
		some purpose in ["material", "tunnel", "other", null]
		some host in ["a.example.org", "b.example.org", "x.b.example.org", "x.c.example.org", "c.example.org", "", null]
		fetch.listed(purpose, host) with data.policy as policy
	}
	held == {["material", "a.example.org"], ["tunnel", "b.example.org"], ["tunnel", "x.c.example.org"]}
	every gone in [{}, {"networks": {}}, {"networks": {"tunnels": {"hosts": []}}}] {
		not fetch.tunnelled("b.example.org") with data.policy as gone
	}
}
