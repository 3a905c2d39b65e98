package admission.requirements.network.license_test

import data.admission.requirements.network.license
import future.keywords.not

test_licensed if {
	license.licensed with input as {"network": {"licensed": true}}
	license.licensed with input as {"network": {"licensed": false, "purpose": "tunnel"}}
	every request in [
		{"network": {"licensed": false, "purpose": "material"}}, {"network": {"licensed": false}},
		{"network": {"licensed": "MIT"}}, {"network": {}}, {},
	] {
		not license.licensed with input as request
	}
}
