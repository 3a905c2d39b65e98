package admission.requirements.license.license_test

import data.admission.requirements.license.license
import future.keywords.not

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_policy := {"licenses": {
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
}}

_request(alternatives, word) := {
	"purpose": "train",
	"exported": false,
	"content": {"sha256": _hash},
	"license": {
		"stated": true,
		"alternatives": alternatives,
		"decisions": [{"sha256": _hash, "decision": word, "decided_at": 100}],
	},
}

_clean := _request([["Free"]], "accepted")

_exported(alternatives) := object.union(
	_request(alternatives, "accepted"),
	{"exported": true, "export_license": {"alternatives": [["Free"]]}},
)

_requests := {
	"clean": _clean,
	"exported": _exported([["Free"]]),
	"exported under another license": _exported([["Alike"]]),
	"table reviews": _request([["Alike"]], "accepted"),
	"table refuses": _request([["Bound"]], "accepted"),
	"table does not know": _request([["Nowhere"]], "accepted"),
	"decision unknown": _request([["Free"]], "unknown"),
	"decision incompatible": _request([["Free"]], "incompatible"),
	"decision review": _request([["Free"]], "review_required"),
	"blank label": json.remove(object.union(_clean, {"license": {"stated": false}}), ["license/alternatives"]),
	"label does not parse": json.remove(_clean, ["license/alternatives"]),
	"no decisions": json.remove(_clean, ["license/decisions"]),
	"no label": json.remove(_clean, ["license"]),
	"no content": json.remove(_clean, ["content"]),
	"no purpose": json.remove(_clean, ["purpose"]),
	"no word on export": json.remove(_clean, ["exported"]),
}

test_stated if {
	held := {name | some name, request in _requests; license.stated with input as request}
	held == object.keys(_requests) - {"blank label", "no label"}
}

test_known if {
	held := {name | some name, request in _requests; license.known with input as request with data.policy as _policy}
	held == {
		"clean", "exported", "exported under another license", "table reviews", "table refuses",
		"decision incompatible", "decision review", "no purpose", "no word on export",
	}
}

test_compatible if {
	held := {name | some name, request in _requests; license.compatible with input as request with data.policy as _policy}
	held == {"clean", "exported", "table reviews", "decision review"}
}

test_admitted if {
	held := {name | some name, request in _requests; license.admitted with input as request with data.policy as _policy}
	held == {"clean", "exported"}
}

test_values_missing if {
	every policy in [{}, json.remove(_policy, ["licenses/licenses/Free"]), json.remove(_policy, ["licenses/categories"])] {
		not license.known with input as _clean with data.policy as policy
		not license.compatible with input as _clean with data.policy as policy
		not license.admitted with input as _clean with data.policy as policy
	}
}
