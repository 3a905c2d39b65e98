package admission.requirements.source.license_test

import data.admission.requirements.source.license
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

_inside := {"bundle": {"purpose": "train", "exported": false}}

_exported := {"bundle": {"purpose": "train", "exported": true, "export_license": {"alternatives": [["Free"]]}}}

_record(alternatives, word) := {
	"content": {"sha256": _hash},
	"license": {
		"stated": true,
		"alternatives": alternatives,
		"decisions": [{"sha256": _hash, "decision": word, "decided_at": 100}],
	},
}

_clean := _record([["Free"]], "accepted")

_records := {
	"clean": _clean,
	"best alternative": _record([["Bound"], ["Free"]], "accepted"),
	"table reviews": _record([["Alike"]], "accepted"),
	"table refuses": _record([["Bound"]], "accepted"),
	"table does not know": _record([["Nowhere"]], "accepted"),
	"decision unknown": _record([["Free"]], "unknown"),
	"decision incompatible": _record([["Free"]], "incompatible"),
	"decision review": _record([["Free"]], "review_required"),
	"decision of another word": _record([["Free"]], "yes"),
	"no decision": json.patch(_clean, [{"op": "replace", "path": "/license/decisions", "value": []}]),
	"blank label": json.remove(object.union(_clean, {"license": {"stated": false}}), ["license/alternatives"]),
	"label does not parse": json.remove(_clean, ["license/alternatives"]),
	"stated is text": object.union(_clean, {"license": {"stated": "true"}}),
	"no content": json.remove(_clean, ["content"]),
	"no label": json.remove(_clean, ["license"]),
}

test_stated if {
	lost := {"blank label", "stated is text", "no label"}
	{name | some name, record in _records; license.stated(record)} == object.keys(_records) - lost
}

test_known if {
	{name | some name, record in _records; license.known(record) with data.policy as _policy} == {
		"clean",
		"best alternative",
		"table reviews",
		"table refuses",
		"decision incompatible",
		"decision review",
		"stated is text",
	}
}

_uses := {"inside": _inside, "exported": _exported}

test_compatible if {
	held := {use: names |
		some use, request in _uses
		names := {name |
			some name, record in _records
			license.compatible(record) with input as request with data.policy as _policy
		}
	}
	clean := {"clean", "best alternative", "decision review", "stated is text"}
	held == {"inside": (clean | {"table reviews"}), "exported": clean}
}

test_admitted if {
	held := {use: names |
		some use, request in _uses
		names := {name |
			some name, record in _records
			license.admitted(record) with input as request with data.policy as _policy
		}
	}
	clean := {"clean", "best alternative", "stated is text"}
	held == {"inside": clean, "exported": clean}
}

test_facts_of_the_use_missing if {
	every request in [
		{},
		json.remove(_inside, ["bundle/purpose"]),
		json.remove(_inside, ["bundle/exported"]),
		json.remove(_exported, ["bundle/export_license"]),
		json.remove(_exported, ["bundle/export_license/alternatives"]),
	] {
		not license.compatible(_clean) with input as request with data.policy as _policy
		not license.admitted(_clean) with input as request with data.policy as _policy
	}
}

test_values_missing if {
	every policy in [{}, json.remove(_policy, ["licenses/licenses/Free"]), json.remove(_policy, ["licenses/categories"])] {
		not license.known(_clean) with data.policy as policy
		not license.compatible(_clean) with input as _inside with data.policy as policy
		not license.admitted(_clean) with input as _inside with data.policy as policy
	}
}
