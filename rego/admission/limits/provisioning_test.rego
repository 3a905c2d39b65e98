package admission.limits.provisioning_test

import data.admission.limits.provisioning
import future.keywords.not

policy := {"provisioning": {"max_agents": 3}}

test_the_specification_and_the_number if {
	provisioning.limits == {"specification": "sha256:a", "max_agents": 3} with input as {"digest": "sha256:a"}
		with data.policy as policy
}

test_without_a_part_there_are_none if {
	not provisioning.limits with input as {} with data.policy as policy
	not provisioning.limits with input as {"digest": "sha256:a"} with data.policy as {"provisioning": {}}
	not provisioning.limits with input as {"digest": "sha256:a"} with data.policy as {"provisioning": {"max_agents": "3"}}
}
