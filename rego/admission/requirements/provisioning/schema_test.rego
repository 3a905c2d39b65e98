package admission.requirements.provisioning.schema_test

import data.admission.requirements.provisioning.schema
import future.keywords.not

test_only_json_is_read if {
	schema.is_json with input as {"readable": true}
	every wrong in [false, null, 1, "true"] {
		not schema.is_json with input as {"readable": wrong}
	}
	not schema.is_json with input as {}
}

test_a_key_is_unknown_or_there_twice if {
	every problem in ["unknown", "repeated", "", null] {
		not schema.key_known({"id": "x", "problem": problem})
	}
	not schema.key_known({"id": "x"})
	schema.key_known({"id": "x", "problem": "type"})
	schema.key_known({"id": "x", "problem": "missing"})
}

test_a_field_is_missing_or_mistyped if {
	every wrong in ["missing", "type", "", null] {
		not schema.field_fits({"id": "x", "problem": wrong})
	}
	not schema.field_fits({"id": "x"})
	schema.field_fits({"id": "x", "problem": "unknown"})
	schema.field_fits({"id": "x", "problem": "repeated"})
}

fitting := {"specification": {"name": "a"}, "tools": []}

test_what_fits_is_there if {
	schema.fits with input as fitting
	every field in ["specification", "tools"] {
		not schema.fits with input as object.remove(fitting, [field])
		not schema.fits with input as object.union(fitting, {field: null})
	}
}
