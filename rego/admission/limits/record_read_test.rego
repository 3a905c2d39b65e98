package admission.limits.record_read_test

import data.admission.limits.record_read
import future.keywords.not

_policy := {"callers": {"read_page": {"decisions": 10, "bytes": 1000}}}

_own := {"whose": "own", "limit": 5, "caller": {"principal": "ana"}}

test_own if {
	limits := record_read.limits with input as _own with data.policy as _policy
	limits == {"whose": "own", "principal": "ana", "decisions": 5, "bytes": 1000}
}

test_all if {
	limits := record_read.limits with input as {"whose": "all", "limit": 50} with data.policy as _policy
	limits == {"whose": "all", "principal": "", "decisions": 10, "bytes": 1000}
}

test_incomplete if {
	every path in ["whose", "limit", "caller", "caller/principal"] {
		not record_read.limits with input as json.remove(_own, [path]) with data.policy as _policy
	}
	not record_read.limits with input as object.union(_own, {"limit": null}) with data.policy as _policy
}

test_values_missing if {
	every path in ["callers", "callers/read_page", "callers/read_page/decisions", "callers/read_page/bytes"] {
		not record_read.limits with input as _own with data.policy as json.remove(_policy, [path])
	}
	texts := {"callers": {"read_page": {"decisions": "10", "bytes": 1000}}}
	not record_read.limits with input as _own with data.policy as texts
}
