package admission.requirements.source.retention_test

import data.admission.requirements.source.retention
import future.keywords.not

_clean := {"retention": {"until": 2000, "basis": "contract"}}

_policy := {"sources": {"retention_bases": ["contract"]}}

_records := {
	"clean": _clean,
	"last second": object.union(_clean, {"retention": {"until": 1000}}),
	"expired": object.union(_clean, {"retention": {"until": 999}}),
	"other ground": object.union(_clean, {"retention": {"basis": "whim"}}),
	"no day": json.remove(_clean, ["retention/until"]),
	"day is null": object.union(_clean, {"retention": {"until": null}}),
	"day is text": object.union(_clean, {"retention": {"until": "9999"}}),
	"no ground": json.remove(_clean, ["retention/basis"]),
	"ground is null": object.union(_clean, {"retention": {"basis": null}}),
	"no retention": {},
}

test_stated if {
	{name | some name, record in _records; retention.stated(record)} == {"clean", "last second", "expired", "other ground"}
}

test_basis_admitted if {
	held := {name | some name, record in _records; retention.basis_admitted(record) with data.policy as _policy}
	held == {"clean", "last second", "expired", "no day", "day is null", "day is text"}
}

test_kept if {
	{name | some name, record in _records; retention.kept(record) with input as {"now": 1000}} == {
		"clean",
		"last second",
		"other ground",
		"no ground",
		"ground is null",
	}
}

test_clock_missing if {
	every request in [{}, {"now": null}, {"now": 0}, {"now": ""}] {
		not retention.kept(_clean) with input as request
	}
}

test_bases_missing if {
	every policy in [{}, {"sources": {}}, {"sources": {"retention_bases": []}}] {
		not retention.basis_admitted(_clean) with data.policy as policy
	}
}
