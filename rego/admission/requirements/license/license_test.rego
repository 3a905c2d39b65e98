package admission.requirements.license.license_test

import data.admission.requirements.license.license
import future.keywords.not

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_policy := {
	"licenses": {
		"categories": {
			"free": {"title": "x", "train": "admit", "export": "admit"},
			"alike": {"title": "x", "train": "review", "export": "listed"},
			"bound": {"title": "x", "train": "refuse", "export": "refuse"},
		},
		"licenses": {
			"Free": {"category": "free", "decision": "admit"},
			"Alike": {"category": "alike", "decision": "admit", "export_under": ["Alike"]},
			"Bound": {"category": "bound", "decision": "admit"},
		},
	},
	"sources": {"purposes": ["train"]},
}

_request(key) := {
	"purpose": "train",
	"exported": false,
	"content": {"sha256": _hash},
	"license": {
		"stated": true,
		"alternatives": [[key]],
		"decisions": [{"sha256": _hash, "decision": "accepted", "decided_at": 100}],
	},
}

_exported(key) := object.union(
	_request(key),
	{"exported": true, "export_license": {"alternatives": [["Free"]]}},
)

_requests := {
	"clean": _request("Free"),
	"exported": _exported("Free"),
	"exported under another license": _exported("Alike"),
	"to review": _request("Alike"),
	"refused": _request("Bound"),
	"unknown": _request("Nowhere"),
	"blank label": json.remove(object.union(_request("Free"), {"license": {"stated": false}}), ["license/alternatives"]),
	"stated is text": object.union(_request("Free"), {"license": {"stated": "true"}}),
	"no label": json.remove(_request("Free"), ["license"]),
	"no content": json.remove(_request("Free"), ["content"]),
	"no purpose": json.remove(_request("Free"), ["purpose"]),
	"no word on export": json.remove(_request("Free"), ["exported"]),
}

test_stated if {
	held := {name | some name, request in _requests; license.stated with input as request}
	held == object.keys(_requests) - {"blank label", "stated is text", "no label"}
}

test_known if {
	held := {name | some name, request in _requests; license.known with input as request with data.policy as _policy}
	held == object.keys(_requests) - {"unknown", "blank label", "no label", "no content"}
}

test_compatible if {
	held := {name | some name, request in _requests; license.compatible with input as request with data.policy as _policy}
	held == {"clean", "exported", "to review", "stated is text"}
}

test_admitted if {
	held := {name | some name, request in _requests; license.admitted with input as request with data.policy as _policy}
	held == {"clean", "exported", "stated is text"}
}

test_values_missing if {
	not license.known with input as _request("Free") with data.policy as {}
	not license.compatible with input as _request("Free") with data.policy as {}
	not license.admitted with input as _request("Free") with data.policy as {}
}
