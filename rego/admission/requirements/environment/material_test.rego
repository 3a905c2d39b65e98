package admission.requirements.environment.material_test

import data.admission.requirements.environment.material
import future.keywords.not

_row := {
	"kinds": ["fixture"],
	"media_types": ["application/json"],
	"limits": {"rows": 2, "text_bytes": 10},
}

_policy := {"environments": {"environments": {"contacts_sqlite": _row}}}

_without(path) := json.remove(_policy, [concat("/", ["environments/environments/contacts_sqlite", path])])

_named := {"environment": "contacts_sqlite"}

test_kind_admitted if {
	material.kind_admitted({"kind": "fixture"}) with input as _named with data.policy as _policy
	every record in [{"kind": "external"}, {"kind": null}, {}] {
		not material.kind_admitted(record) with input as _named with data.policy as _policy
	}
	not material.kind_admitted({"kind": "fixture"}) with input as {} with data.policy as _policy
	not material.kind_admitted({"kind": "fixture"}) with input as _named with data.policy as _without("kinds")
}

test_media_type_admitted if {
	clean := {"media_type": "application/json"}
	material.media_type_admitted(clean) with input as _named with data.policy as _policy
	every record in [{"media_type": "text/csv"}, {"media_type": null}, {}] {
		not material.media_type_admitted(record) with input as _named with data.policy as _policy
	}
	not material.media_type_admitted(clean) with input as {} with data.policy as _policy
	not material.media_type_admitted(clean) with input as _named with data.policy as _without("media_types")
}

test_material_fits if {
	material.material_fits({"material": {"fits": true, "rows": 1}})
	every facts in [{"fits": false, "rows": 1}, {"fits": true, "rows": 0}, {"fits": true}, {"rows": 1}, {}, null] {
		not material.material_fits({"material": facts})
	}
	not material.material_fits({"material": {"fits": true, "rows": "1"}})
	not material.material_fits({})
}

test_plain_text if {
	material.plain_text({"material": {"controls": 0}})
	every facts in [{"controls": 1}, {"controls": null}, {}] {
		not material.plain_text({"material": facts})
	}
}

test_without_formulas if {
	material.without_formulas({"material": {"formulas": 0}})
	every facts in [{"formulas": 1}, {"formulas": null}, {}] {
		not material.without_formulas({"material": facts})
	}
}

test_text_within_limit if {
	clean := {"material": {"longest": 10}}
	material.text_within_limit(clean) with input as _named with data.policy as _policy
	every longest in [11, null, "1"] {
		record := {"material": {"longest": longest}}
		not material.text_within_limit(record) with input as _named with data.policy as _policy
	}
	not material.text_within_limit({}) with input as _named with data.policy as _policy
	not material.text_within_limit(clean) with input as _named with data.policy as _without("limits/text_bytes")
}

test_rows_within_limit if {
	material.rows_within_limit with input as object.union(_named, {"rows": 2}) with data.policy as _policy
	every rows in [3, null, "1"] {
		not material.rows_within_limit with input as object.union(_named, {"rows": rows}) with data.policy as _policy
	}
	not material.rows_within_limit with input as _named with data.policy as _policy
	not material.rows_within_limit with input as object.union(_named, {"rows": 1})
		with data.policy as _without("limits/rows")
}

test_limits_are_numbers if {
	every wrong in [null, true, "", [], {}] {
		policy := {"environments": {"environments": {"contacts_sqlite": {"limits": {"rows": wrong, "text_bytes": wrong}}}}}
		not material.rows_within_limit with input as object.union(_named, {"rows": 1}) with data.policy as policy
		not material.text_within_limit({"material": {"longest": 1}}) with input as _named with data.policy as policy
	}
}
