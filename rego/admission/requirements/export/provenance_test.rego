package admission.requirements.export.provenance_test

import data.admission.requirements.export.provenance
import future.keywords.not

_policy := {"export": {"kinds": {"synthetic": ["fixture"], "external": ["external"]}}}

_origin := {"id": "0", "kind": "fixture", "sha256": "h", "export": true}

_samples := {
	"synthetic": {"kind": "synthetic", "provenance": [_origin]},
	"none": {"kind": "synthetic", "provenance": []},
	"missing": {"kind": "synthetic"},
	"null": {"kind": "synthetic", "provenance": null},
	"unknown": {"kind": "synthetic", "provenance": [_origin, {"id": "1"}]},
	"not for export": {"kind": "synthetic", "provenance": [_origin, object.union(_origin, {"export": false})]},
	"contradicted": {"kind": "synthetic", "provenance": [_origin, object.union(_origin, {"kind": "external"})]},
	"other kind": {"kind": "imagined", "provenance": [_origin]},
	"no kind": {"provenance": [_origin]},
}

_all := object.keys(_samples)

test_stated if {
	_all - {name | some name, one in _samples; provenance.stated(one)} == {"none", "missing", "null"}
}

test_known if {
	_all - {name | some name, one in _samples; provenance.known(one)} == {"none", "missing", "null", "unknown"}
}

test_for_export if {
	held := {name | some name, one in _samples; provenance.for_export(one)}
	_all - held == {"none", "missing", "null", "unknown", "not for export"}
}

test_kind_fits if {
	held := {name | some name, one in _samples; provenance.kind_fits(one) with data.policy as _policy}
	_all - held == {"none", "missing", "null", "unknown", "contradicted", "other kind", "no kind"}
	every one in _samples {
		not provenance.kind_fits(one) with data.policy as {}
	}
}

test_of_another_type if {
	every wrong in [null, true, 0, [], {}] {
		every name in ["sha256", "kind"] {
			not provenance.known({"kind": "synthetic", "provenance": [object.union(_origin, {name: wrong})]})
		}
	}
	not provenance.stated({"provenance": {"x": _origin}})
	every kinds in [[["fixture"]], {"synthetic": {"x": "fixture"}}] {
		every kind in [0, "synthetic"] {
			sample := {"kind": kind, "provenance": [_origin]}
			not provenance.kind_fits(sample) with data.policy as {"export": {"kinds": kinds}}
		}
	}
}

_terms := {"purpose": "train", "license": [["A"]], "export_license": [["B"]], "kept_until": 10}

_under(changes) := {"provenance": [object.union(_origin, {"terms": object.union(_terms, change)}) |
	some change in array.concat([{}], changes)
]}

test_kept if {
	provenance.kept(_under([])) with input as {"now": 10}
	not provenance.kept(_under([])) with input as {"now": 11}
	not provenance.kept(_under([{"kept_until": 9}])) with input as {"now": 10}
	not provenance.kept(_under([{"kept_until": "z"}])) with input as {"now": 10}
	not provenance.kept({"provenance": [_origin]}) with input as {"now": 10}
	not provenance.kept({"provenance": []}) with input as {"now": 10}
	every wrong in [null, true, 0, "", [], {}] {
		not provenance.kept(_under([])) with input as {"now": wrong}
	}
}

_licenses(decision, under) := {
	"sources": {"purposes": ["train"]},
	"licenses": {
		"categories": {"c": {"train": "admit", "export": "listed"}},
		"licenses": {
			"A": {"category": "c", "decision": decision, "export_under": under},
			"B": {"category": "c", "decision": "admit", "export_under": ["B"]},
		},
	},
}

test_licensed if {
	every decision in ["admit", "review"] {
		provenance.licensed(_under([])) with data.policy as _licenses(decision, ["B"])
	}
	not provenance.licensed(_under([])) with data.policy as _licenses("refuse", ["B"])
	not provenance.licensed(_under([])) with data.policy as _licenses("admit", [])
	not provenance.licensed(_under([])) with data.policy as {}
	every change in [{"purpose": "eval"}, {"license": [["C"]]}, {"license": []}, {"export_license": []}] {
		not provenance.licensed(_under([change])) with data.policy as _licenses("admit", ["B"])
	}
	every one in [{"provenance": []}, {"provenance": [_origin]}, {}] {
		not provenance.licensed(one) with data.policy as _licenses("admit", ["B"])
	}
}

test_id_unique if {
	samples := [
		{"occurrences": 1, "id": "a"}, {"occurrences": 1, "id": ""}, {"occurrences": 1, "id": null}, {"occurrences": 1},
		{"occurrences": 2, "id": "a"}, {"occurrences": null, "id": "a"}, {"occurrences": true, "id": "a"}, {"id": "a"},
		{},
	]
	{at | some at, item in samples; provenance.id_unique(item)} == {0}
}
