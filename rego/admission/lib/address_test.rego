package admission.lib.address_test

import data.admission.lib.address
import future.keywords.not

_policy := {"addresses": {
	"public": [{"family": "ipv4", "cidr": "0.0.0.0/0"}, {"family": "ipv6", "cidr": "2000::/3"}],
	"refused": [{"cidr": "10.0.0.0/8"}, {"cidr": "2002::/16"}],
}}

_v4 := {"text": "8.8.8.8", "family": "ipv4", "isatap": false, "scoped": false}

_v6 := {"text": "2606:4700::1111", "family": "ipv6", "isatap": false, "scoped": false}

_addresses := {
	"ipv4": _v4,
	"ipv6": _v6,
	"before a refused range": object.union(_v4, {"text": "9.255.255.255"}),
	"after a refused range": object.union(_v4, {"text": "11.0.0.0"}),
	"first of a refused range": object.union(_v4, {"text": "10.0.0.0"}),
	"last of a refused range": object.union(_v4, {"text": "10.255.255.255"}),
	"in a refused range of ipv6": object.union(_v6, {"text": "2002:808:808::1"}),
	"outside of what is public": object.union(_v6, {"text": "fd00::1"}),
	"ipv4 in ipv6": object.union(_v6, {"text": "::ffff:8.8.8.8"}),
	"ipv4 in nat64": object.union(_v6, {"text": "64:ff9b::808:808"}),
	"of the other family": object.union(_v4, {"family": "ipv6"}),
	"of an unknown family": object.union(_v4, {"family": "unknown"}),
	"isatap": object.union(_v6, {"isatap": true}),
	"scoped": object.union(_v6, {"scoped": true}),
	"no text": object.remove(_v4, ["text"]),
	"no family": object.remove(_v4, ["family"]),
	"no word on isatap": object.remove(_v4, ["isatap"]),
	"no word on scope": object.remove(_v4, ["scoped"]),
	"text is a number": object.union(_v4, {"text": 1}),
	"nothing": {},
}

test_public if {
	held := {name | some name, one in _addresses; address.public(one) with data.policy as _policy}
	held == {"ipv4", "ipv6", "before a refused range", "after a refused range"}
}

test_values_missing if {
	incomplete := [
		{},
		{"addresses": {"public": _policy.addresses.public}},
		{"addresses": {"refused": _policy.addresses.refused}},
		{"addresses": {"public": _policy.addresses.public, "refused": []}},
		{"addresses": {"public": [{"cidr": "0.0.0.0/0"}], "refused": [{"cidr": "10.0.0.0/8"}]}},
		{"addresses": {"public": [{"family": "ipv4"}], "refused": [{"cidr": "10.0.0.0/8"}]}},
		{"addresses": {"public": _policy.addresses.public, "refused": [{"reason": "private use"}]}},
	]
	every policy in incomplete {
		not address.public(_v4) with data.policy as policy
	}
}
