package admission.requirements.source.export_test

import data.admission.requirements.source.export
import future.keywords.not

_policy := {"licenses": {
	"categories": {"free": {"title": "x", "export": "admit"}},
	"licenses": {"Free": {"category": "free", "decision": "admit"}},
}}

_inside := {"bundle": {"exported": false}}

_exported := {"bundle": {"exported": true, "export_license": {"alternatives": [["Free"]]}}}

_records := {
	"allowed": {"export": "allowed"},
	"forbidden": {"export": "forbidden"},
	"other word": {"export": "perhaps"},
	"null": {"export": null},
	"nothing": {},
}

test_stated if {
	{name | some name, record in _records; export.stated(record)} == {"allowed", "forbidden"}
}

test_permitted if {
	requests := {
		"inside": _inside,
		"exported": _exported,
		"no bundle": {},
		"no word on export": {"bundle": {}},
		"null": {"bundle": {"exported": null}},
		"text": {"bundle": {"exported": "false"}},
	}
	held := {use: names |
		some use, request in requests
		names := {name | some name, record in _records; export.permitted(record) with input as request}
	}
	held == {
		"inside": {"allowed", "forbidden"},
		"exported": {"allowed"},
		"no bundle": set(),
		"no word on export": set(),
		"null": set(),
		"text": set(),
	}
}

test_license_known if {
	requests := {
		"inside": _inside,
		"exported": _exported,
		"not in the table": {"bundle": {"exported": true, "export_license": {"alternatives": [["Free"], ["Nowhere"]]}}},
		"does not parse": {"bundle": {"exported": true, "export_license": {}}},
		"no license": {"bundle": {"exported": true}},
		"no word on export": {"bundle": {"export_license": {"alternatives": [["Free"]]}}},
		"null": {"bundle": {"exported": null}},
		"no bundle": {},
	}
	held := {name | some name, request in requests; export.license_known with input as request with data.policy as _policy}
	held == {"inside", "exported"}
}

test_values_missing if not export.license_known with input as _exported with data.policy as {}
