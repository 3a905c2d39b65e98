package admission.requirements.source.retrieval_test

import data.admission.requirements.source.retrieval
import future.keywords.not

_fixture := {"kind": "fixture", "remote": false}

_external := {"kind": "external", "remote": true, "url": {"canonical": true}, "retrieved_at": 100}

_records := {
	"fixture": _fixture,
	"external": _external,
	"just now": object.union(_external, {"retrieved_at": 1000}),
	"in the future": object.union(_external, {"retrieved_at": 1001}),
	"no time": json.remove(_external, ["retrieved_at"]),
	"time is null": object.union(_external, {"retrieved_at": null}),
	"time is 0": object.union(_external, {"retrieved_at": 0}),
	"time is text": object.union(_external, {"retrieved_at": "100"}),
	"fixture with a time": object.union(_fixture, {"remote": true, "retrieved_at": 100}),
	"no kind": json.remove(_external, ["kind"]),
	"nothing": {},
}

test_time_stated if {
	{name | some name, record in _records; retrieval.time_stated(record)} == {
		"fixture",
		"external",
		"just now",
		"in the future",
	}
}

test_time_past if {
	held := {name | some name, record in _records; retrieval.time_past(record) with input as {"now": 1000}}
	held == {"fixture", "external", "just now"}
}

test_clock_missing if {
	every request in [{}, {"now": null}, {"now": ""}, {"now": []}] {
		not retrieval.time_past(_external) with input as request
	}
}
