package admission.lib.waiver_test

import data.admission.lib.waiver
import future.keywords.not

_row := {
	"subject": "records/a",
	"principal": "pipeline",
	"facts": {"bundle.digest": "sha256:1", "purpose": "train"},
	"owner": "data@example.org",
	"approver": "compliance@example.org",
	"reason": "renewed soon",
	"starts": "2026-11-02",
	"until": "2026-11-30",
}

_scope := {"facts": ["bundle.digest", "purpose"], "any": []}

_policy(scope, row) := {"waivers": {
	"days_max": 29,
	"waivable": {"source": {"late": scope}},
	"waivers": {"source": {"late": {"w1": row}}},
}}

_input := {
	"now": 1794960000, # 2026-11-18
	"caller": {"principal": "pipeline"},
	"bundle": {"digest": "sha256:1"},
	"purpose": "train",
}

_id(document, scope, row, about) := id if {
	# regal ignore:external-reference,with-outside-test-context
	id := waiver.covering("source", "late", about) with input as document with data.policy as _policy(scope, row)
}

_covers(row) if _id(_input, _scope, row, "records/a") == "w1"

_with(change) := object.union(object.remove(_row, object.keys(change)), change)

_wrong := [null, true, 0, "", " ", [], {}]

test_a_waiver_covers_what_it_is_for if {
	_covers(_row)
	not _id(_input, _scope, _row, "records/b")
	not _id(_input, _scope, _row, null)
	not _id(object.union(_input, {"purpose": "eval"}), _scope, _row, "records/a")
	not _id(object.union(_input, {"caller": {"principal": "other"}}), _scope, _row, "records/a")

	# regal ignore:external-reference
	not waiver.covering("source", "other", "records/a") with input as _input with data.policy as _policy(_scope, _row)
}

test_without_a_field_or_with_a_wrong_one_it_does_nothing if {
	every name, _ in object.remove(_row, ["reason"]) {
		not _covers(object.remove(_row, [name]))
		every value in _wrong {
			not _covers(_with({name: value}))
		}
	}
	not _covers(object.remove(_row, ["reason"]))
	every value in [null, true, 0, "", [], {}] {
		not _covers(_with({"reason": value}))
	}
}

test_facts_are_exactly_those_that_are_asked_for if {
	not _covers(_with({"facts": {"purpose": "train"}}))
	not _covers(_with({"facts": {"bundle.id": "b"}}))
	not _id(_input, object.union(_scope, {"facts": []}), _with({"facts": {}}), "records/a")
	every value in [null, "", 0] {
		document := object.union(_input, {"purpose": value})
		not _id(document, _scope, _with({"facts": {"bundle.digest": "sha256:1", "purpose": value}}), "records/a")
	}
	not _covers(_with({"facts": object.union(_row.facts, {"export": "none"})}))
	not _id(_input, {"facts": {"a": "bundle.digest", "b": "purpose"}, "any": []}, _row, "records/a")
	not _id(object.remove(_input, ["bundle"]), _scope, _row, "records/a")
}

test_any_only_where_it_is_admitted if {
	every name in ["subject", "principal"] {
		not _covers(_with({name: "any"}))
		not _id(_input, object.union(_scope, {"any": [name]}), _with({name: "other"}), "records/a")
		_id(_input, object.union(_scope, {"any": [name]}), _with({name: "any"}), "records/a") == "w1"
	}
	open := object.union(_scope, {"any": ["subject"]})
	_id(_input, open, _with({"subject": "any"}), null) == "w1"
}

test_a_finding_about_the_whole_request if {
	_id(_input, _scope, _with({"subject": "request"}), null) == "w1"
	not _id(_input, _scope, _with({"subject": "request"}), "records/a")
}

test_an_item_without_an_id_is_not_covered_by_its_number if {
	not _id(_input, _scope, _with({"subject": "records/#0"}), "records/#0")
}

test_a_caller_without_a_name_is_no_principal if {
	every principal in [null, "", 0] {
		document := object.union(_input, {"caller": {"principal": principal}})
		not _id(document, _scope, _with({"principal": principal}), "records/a")
	}
}

test_only_on_its_days if {
	every now in [1793577600, 1796083199] { # the first second of 2 November, the last of 30 November
		_id(object.union(_input, {"now": now}), _scope, _row, "records/a") == "w1"
	}
	every now in [1793577599, 1796083200, null, true, "", "2026-11-18", [], {}] {
		not _id(object.union(_input, {"now": now}), _scope, _row, "records/a")
	}
	not _id(object.remove(_input, ["now"]), _scope, _row, "records/a")
}

test_not_longer_than_admitted if {
	not _covers(_with({"starts": "2026-11-01"}))
	_covers(_with({"starts": "2026-11-03"}))
	every days in [null, "", "29", true, 28, {}] {
		policy := object.union(_policy(_scope, _row), {"waivers": {"days_max": days}})

		# regal ignore:external-reference,with-outside-test-context
		not waiver.covering("source", "late", "records/a") with input as _input with data.policy as policy
	}
}

test_the_approver_is_another_person if {
	not _covers(_with({"approver": "data@example.org"}))
	not _covers(_with({"approver": "Data@Example.org"}))
}

test_of_several_the_first_by_name if {
	policy := object.union(_policy(_scope, _row), {"waivers": {"waivers": {"source": {"late": {"a": _row, "b": {}}}}}})

	# regal ignore:external-reference,with-outside-test-context
	waiver.covering("source", "late", "records/a") == "a" with input as _input with data.policy as policy
}

test_without_values_nothing_is_covered if {
	every policy in [{}, {"waivers": {}}, {"waivers": {"waivers": {"source": {"late": {"w1": _row}}}, "days_max": 29}}] {
		# regal ignore:external-reference,with-outside-test-context
		not waiver.covering("source", "late", "records/a") with input as _input with data.policy as policy
	}
}
