package admission.lib.export_test

import data.admission.lib.export
import future.keywords.not

_policy := {"export": {"treatments": {"fixture": ["fixture", "redact"], "external": ["redact"]}}}

_origins := [{"id": "0", "kind": "fixture"}, {"id": "1", "kind": "external"}]

_sample(treatment) := {"treatment": treatment, "provenance": _origins}

test_treated_for_every_origin if {
	export.treated(_sample("redact")) with data.policy as _policy
	not export.treated(_sample("fixture")) with data.policy as _policy
	not export.treated(_sample("redact")) with data.policy as {}
	not export.treated(object.union(_sample("redact"), {"provenance": []})) with data.policy as _policy
}

test_no_treatment_is_not_listed if {
	every wrong in [null, true, 0, [], {}] {
		policy := {"export": {"treatments": {"fixture": [wrong], "external": [wrong]}}}
		not export.treated(_sample(wrong)) with data.policy as policy
	}
}
