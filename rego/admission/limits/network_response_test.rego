package admission.limits.network_response_test

import data.admission.limits.network_response
import future.keywords.not

_clean := {"id": "a", "body": {"sha256": "aa", "bytes": 2}, "head": {"media_type": "application/json"}}

test_limits if {
	limits := network_response.limits with input as _clean
	limits == {"id": "a", "sha256": "aa", "bytes": 2, "media_type": "application/json"}
}

test_incomplete if {
	every gone in ["id", "body", "body/sha256", "body/bytes", "head", "head/media_type"] {
		not network_response.limits with input as json.remove(_clean, [gone])
	}
}
