package admission.requirements.provisioning.approval_test

import data.admission.requirements.provisioning.approval
import future.keywords.not

values := {"provisioning": {"approved": ["sha256:a"], "max_agents": 2}}

test_only_a_listed_digest_needs_no_approval if {
	known := {"specification": {}, "digest": "sha256:a"}
	approval.approved with input as known with data.policy as values
	not approval.approved with input as {"specification": {}, "digest": "sha256:b"} with data.policy as values
	not approval.approved with input as {"digest": "sha256:a"} with data.policy as values
	not approval.approved with input as {"specification": {}} with data.policy as values
	not approval.approved with input as known with data.policy as {}
}

test_the_number_of_active_agents if {
	approval.few_agents with input as {"agents": []} with data.policy as values
	approval.few_agents with input as {"agents": [{}]} with data.policy as values
	not approval.few_agents with input as {"agents": [{}, {}]} with data.policy as values
	not approval.few_agents with input as {} with data.policy as values
	not approval.few_agents with input as {"agents": {}} with data.policy as values
	not approval.few_agents with input as {"agents": []} with data.policy as {}
	not approval.few_agents with input as {"agents": []} with data.policy as {"provisioning": {"max_agents": "2"}}
}
