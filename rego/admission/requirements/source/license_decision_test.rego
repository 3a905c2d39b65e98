package admission.requirements.source.license_decision_test

import data.admission.requirements.source.license_decision
import future.keywords.not

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_other := "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

_record(decisions) := {"id": "contacts-1", "content": {"sha256": _hash}, "license": {"decisions": decisions}}

_accepted := {"sha256": _hash, "decision": "accepted", "decided_at": 100}

_records := {
	"clean": _record([_accepted]),
	"second decision": _record([_accepted, _accepted]),
	"another content": _record([object.union(_accepted, {"sha256": _other})]),
	"in the future": _record([object.union(_accepted, {"decided_at": 1001})]),
	"no time": _record([json.remove(_accepted, ["decided_at"])]),
	"none": _record([]),
	"no license": {"id": "contacts-1", "content": {"sha256": _hash}},
	"no content": json.remove(_record([_accepted]), ["content"]),
}

test_taken if {
	{name | some name, record in _records; license_decision.taken(record)} == {
		"clean",
		"second decision",
		"in the future",
		"no time",
	}
}

test_unambiguous if {
	{name | some name, record in _records; license_decision.unambiguous(record)} == {"clean", "in the future"}
}

test_past if {
	held := {name | some name, record in _records; license_decision.past(record) with input as {"now": 1000}}
	held == {"clean", "second decision"}
}

test_clock_missing if not license_decision.past(_records.clean) with input as {}
