package admission.requirements.license.license_decision_test

import data.admission.requirements.license.license_decision
import future.keywords.not

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_other := "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

_request(decisions) := {"now": 1000, "content": {"sha256": _hash}, "license": {"decisions": decisions}}

_accepted := {"sha256": _hash, "decision": "accepted", "decided_at": 100}

_requests := {
	"clean": _request([_accepted]),
	"second decision": _request([_accepted, _accepted]),
	"another content": _request([object.union(_accepted, {"sha256": _other})]),
	"in the future": _request([object.union(_accepted, {"decided_at": 1001})]),
	"no time": _request([json.remove(_accepted, ["decided_at"])]),
	"none": _request([]),
	"no license": json.remove(_request([]), ["license"]),
	"no content": json.remove(_request([_accepted]), ["content"]),
	"no clock": json.remove(_request([_accepted]), ["now"]),
}

test_taken if {
	{name | some name, request in _requests; license_decision.taken with input as request} == {
		"clean",
		"second decision",
		"in the future",
		"no time",
		"no clock",
	}
}

test_unambiguous if {
	{name | some name, request in _requests; license_decision.unambiguous with input as request} == {
		"clean",
		"in the future",
		"no clock",
	}
}

test_past if {
	{name | some name, request in _requests; license_decision.past with input as request} == {"clean", "second decision"}
}
