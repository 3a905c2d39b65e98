package admission.lib.host_test

import data.admission.lib.host
import future.keywords.not

_policy := {"addresses": {
	"public": [{"family": "ipv4", "cidr": "0.0.0.0/0"}, {"family": "ipv6", "cidr": "2000::/3"}],
	"refused": [{"cidr": "10.0.0.0/8"}],
	"local_names": ["localhost", "*.local"],
}}

test_names if {
	host.names("a.b.example") == {"a.b.example", "*.b.example", "*.example"}
	host.names("localhost") == {"localhost"}
}

test_parts if {
	host.parts("https://a.example") == {"scheme": "https", "host": "a.example", "port": ""}
	host.parts("http://[::1]:8080") == {"scheme": "http", "host": "[::1]", "port": "8080"}
	every origin in ["a.example", "https://", "https://a.example/", "ftp://a.example", "https://u@a/b", "", null, 1] {
		not host.parts(origin)
	}
}

test_literal if {
	host.literal("10.0.0.1") == "10.0.0.1"
	host.literal("[fd00::1]") == "fd00::1"
	every name in ["a.example", "localhost", "10.0.0.1.example", "[fd00::1", "fd00::1]", "", null] {
		not host.literal(name)
	}
}

test_public if {
	every name in ["a.example", "8.8.8.8", "[2606:4700::1111]"] {
		host.public(name) with data.policy as _policy
		not host.public(name) with data.policy as {}
	}
	none := object.union(_policy, {"addresses": {"local_names": []}})
	not host.public("a.example") with data.policy as none
	every name in ["localhost", "a.local", "10.0.0.1", "[::1]", "[fd00::1]", "", null] {
		not host.public(name) with data.policy as _policy
	}
}
