package admission.requirements.network_response.payload_test

import data.admission.requirements.network_response.payload
import future.keywords.not

_policy := {"networks": {"fetch": {"max_bytes": 100}}}

_clean := {"transfer": {"within_cap": true, "complete": true}, "body": {"bytes": 100}}

test_small_enough if {
	payload.small_enough with input as _clean with data.policy as _policy
	every request in [
		object.union(_clean, {"transfer": {"within_cap": false}}),
		object.union(_clean, {"body": {"bytes": 101}}),
		object.union(_clean, {"body": {"bytes": null}}),
		json.remove(_clean, ["transfer/within_cap"]),
		json.remove(_clean, ["body"]),
		{},
	] {
		not payload.small_enough with input as request with data.policy as _policy
	}
	not payload.small_enough with input as _clean with data.policy as {}
}

test_complete if {
	payload.complete with input as _clean
	every request in [
		object.union(_clean, {"transfer": {"complete": false}}),
		json.remove(_clean, ["transfer/complete"]),
		{},
	] {
		not payload.complete with input as request
	}
}
