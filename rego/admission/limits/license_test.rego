package admission.limits.license_test

import data.admission.limits.license
import future.keywords.not

_clean := {"purpose": "train", "exported": true}

test_complete if {
	limits := license.limits with input as _clean
	limits == {"purpose": "train", "export": {"allowed": true}}
}

test_incomplete if {
	every request in [
		{},
		json.remove(_clean, ["purpose"]),
		json.remove(_clean, ["exported"]),
		object.union(_clean, {"purpose": null}),
		object.union(_clean, {"exported": null}),
	] {
		not license.limits with input as request
	}
}
