package admission.limits.record_test

import data.admission.limits.record
import future.keywords.not

_clean := {"detail": "summary", "retention_days": 30}

test_complete if {
	limits := record.limits with input as _clean
	limits == _clean
}

test_incomplete if {
	every field, _ in _clean {
		not record.limits with input as json.remove(_clean, [field])
		not record.limits with input as object.union(_clean, {field: null})
	}
}
