package admission.requirements.source.license_test

import data.admission.requirements.source.license
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

_inside := {"bundle": {"purpose": "train", "exported": false}}

_exported := {"bundle": {"purpose": "train", "exported": true, "export_license": {"alternatives": [["Free"]]}}}

_uses := {"inside": _inside, "exported": _exported}

_record(key) := {
	"content": {"sha256": _hash},
	"license": {
		"stated": true,
		"alternatives": [[key]],
		"decisions": [{"sha256": _hash, "decision": "accepted", "decided_at": 100}],
	},
}

_records := {
	"clean": _record("Free"),
	"to review": _record("Alike"),
	"refused": _record("Bound"),
	"unknown": _record("Nowhere"),
	"blank label": json.remove(object.union(_record("Free"), {"license": {"stated": false}}), ["license/alternatives"]),
	"stated is text": object.union(_record("Free"), {"license": {"stated": "true"}}),
	"no label": json.remove(_record("Free"), ["license"]),
	"no content": json.remove(_record("Free"), ["content"]),
}

test_stated if {
	held := {name | some name, record in _records; license.stated(record)}
	held == object.keys(_records) - {"blank label", "stated is text", "no label"}
}

test_known if {
	held := {name | some name, record in _records; license.known(record) with data.policy as _policy}
	held == {"clean", "to review", "refused", "stated is text"}
}

test_compatible if {
	held := {use: names |
		some use, request in _uses
		names := {name |
			some name, record in _records
			license.compatible(record) with input as request with data.policy as _policy
		}
	}
	held == {"inside": {"clean", "to review", "stated is text"}, "exported": {"clean", "stated is text"}}
}

test_admitted if {
	held := {use: names |
		some use, request in _uses
		names := {name |
			some name, record in _records
			license.admitted(record) with input as request with data.policy as _policy
		}
	}
	held == {"inside": {"clean", "stated is text"}, "exported": {"clean", "stated is text"}}
}

test_facts_of_the_use_missing if {
	every request in [
		{},
		json.remove(_inside, ["bundle/purpose"]),
		json.remove(_inside, ["bundle/exported"]),
		json.remove(_exported, ["bundle/export_license"]),
		json.remove(_exported, ["bundle/export_license/alternatives"]),
	] {
		not license.compatible(_records.clean) with input as request with data.policy as _policy
		not license.admitted(_records.clean) with input as request with data.policy as _policy
	}
}

test_values_missing if {
	not license.known(_records.clean) with data.policy as {}
	not license.compatible(_records.clean) with input as _inside with data.policy as {}
	not license.admitted(_records.clean) with input as _inside with data.policy as {}
}
