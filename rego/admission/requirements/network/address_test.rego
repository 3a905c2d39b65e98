package admission.requirements.network.address_test

import data.admission.requirements.network.address
import future.keywords.not

_policy := {"addresses": {
	"public": [{"family": "ipv4", "cidr": "0.0.0.0/0"}],
	"refused": [{"cidr": "10.0.0.0/8"}],
}}

_one := {"text": "8.8.8.8", "family": "ipv4", "isatap": false, "scoped": false}

test_known if {
	address.known with input as {"addresses": [_one]}
	every request in [{"addresses": []}, {"addresses": {"x": 1}}, {}] {
		not address.known with input as request
	}
}

test_public if {
	address.public(_one) with data.policy as _policy
	every one in [object.union(_one, {"text": "10.0.0.1"}), object.remove(_one, ["text"]), {}] {
		not address.public(one) with data.policy as _policy
	}
	not address.public(_one) with data.policy as {}
}
