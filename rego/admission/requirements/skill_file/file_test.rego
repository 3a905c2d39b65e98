package admission.requirements.skill_file.file_test

import data.admission.requirements.skill_file.file
import future.keywords.not

_policy := {"skills": {"max_bytes": 100, "max_names": 1}}

test_file_found if {
	file.file_found with input as {"file": {"found": true}}
	every one in [{"file": {"found": false}}, {"file": {"found": null}}, {"file": {}}, {}] {
		not file.file_found with input as one
	}
}

test_regular if {
	file.regular with input as {"file": {"kind": "file"}}
	every kind in ["folder", "fifo", "device", "socket", "", null] {
		not file.regular with input as {"file": {"kind": kind}}
	}
	not file.regular with input as {"file": {}}
}

test_one_name if {
	held := {names |
		some names in [0, 1, 2, -1, null, "1"]
		file.one_name with input as {"file": {"names": names}} with data.policy as _policy
	}
	held == {1}
	not file.one_name with input as {"file": {}} with data.policy as _policy
	not file.one_name with input as {"file": {"names": 1}} with data.policy as {"skills": {}}
}

test_a_number_is_no_text_whatever_the_values_are if {
	many := {"skills": {"max_bytes": "many", "max_names": "many"}}
	not file.one_name with input as {"file": {"names": "1"}} with data.policy as many
	not file.small_enough with input as {"file": {"bytes": "1"}} with data.policy as many
}

test_small_enough if {
	held := {bytes |
		some bytes in [0, 99, 100, 101, -1, null, "1"]
		file.small_enough with input as {"file": {"bytes": bytes}} with data.policy as _policy
	}
	held == {0, 99, 100}
	not file.small_enough with input as {"file": {}} with data.policy as _policy
	not file.small_enough with input as {"file": {"bytes": 1}} with data.policy as {"skills": {}}
}
