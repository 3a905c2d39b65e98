package admission.requirements.memory.owner_test

import data.admission.requirements.memory.owner
import future.keywords.not

test_named if {
	owner.named with input as {"caller": {"principal": "agent-7"}}
	every caller in [{}, {"principal": ""}, {"principal": null}] {
		not owner.named with input as {"caller": caller}
	}
	not owner.named with input as {}
}

test_owned if {
	memory := {"id": "m1", "owner": "agent-7"}
	owner.owned(memory) with input as {"caller": {"principal": "agent-7"}}
	not owner.owned(memory) with input as {"caller": {"principal": "agent-8"}}
	not owner.owned(memory) with input as {"caller": {}}
	not owner.owned({"id": "m1"}) with input as {"caller": {}}
}

test_known if {
	known := {"memories": [{"id": "m1"}]}
	owner.known({"id": "m1"}) with input as known
	not owner.known({"id": "m2"}) with input as known
	not owner.known({}) with input as known
	not owner.known({"id": "m1"}) with input as {}
}

test_no_name_is_not_the_same_name if {
	every wrong in [null, true, 0, [], {}] {
		not owner.owned({"id": "m1", "owner": wrong}) with input as {"caller": {"principal": wrong}}
		not owner.known({"id": wrong}) with input as {"memories": [{"id": wrong}]}
	}
}
