package admission.requirements.license.use_test

import data.admission.requirements.license.use
import future.keywords.not

_policy := {
	"sources": {"purposes": ["train"]},
	"licenses": {
		"categories": {"free": {"title": "x", "export": "admit"}},
		"licenses": {"Free": {"category": "free", "decision": "admit"}},
	},
}

_inside := {"purpose": "train", "exported": false}

_exported := {"purpose": "train", "exported": true, "export_license": {"alternatives": [["Free"]]}}

_requests := {
	"inside": _inside,
	"exported": _exported,
	"other purpose": object.union(_inside, {"purpose": "resell"}),
	"purpose is null": object.union(_inside, {"purpose": null}),
	"no purpose": json.remove(_inside, ["purpose"]),
	"export license not in the table": object.union(_exported, {"export_license": {"alternatives": [["Nowhere"]]}}),
	"export license does not parse": object.union(_inside, {"exported": true, "export_license": {}}),
	"no export license": json.remove(_exported, ["export_license"]),
	"no word on export": json.remove(_inside, ["exported"]),
	"a license, no word on export": json.remove(_exported, ["exported"]),
	"export is null": object.union(_inside, {"exported": null}),
}

test_purpose_admitted if {
	held := {name |
		some name, request in _requests
		use.purpose_admitted with input as request with data.policy as _policy
	}
	held == object.keys(_requests) - {"other purpose", "purpose is null", "no purpose"}
}

test_export_license_known if {
	held := {name |
		some name, request in _requests
		use.export_license_known with input as request with data.policy as _policy
	}
	held == {"inside", "exported", "other purpose", "purpose is null", "no purpose"}
}

test_values_missing if {
	not use.purpose_admitted with input as _exported with data.policy as {}
	not use.export_license_known with input as _exported with data.policy as {}
}
