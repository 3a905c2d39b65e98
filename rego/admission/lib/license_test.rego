package admission.lib.license_test

import data.admission.lib.license
import future.keywords.not

_category(train, eval, export) := {"title": "x", "train": train, "eval": eval, "export": export}

_policy := {
	"licenses": {
		"categories": {
			"free": _category("admit", "admit", "admit"),
			"alike": _category("review", "admit", "listed"),
			"bound": _category("refuse", "review", "refuse"),
		},
		"licenses": {
			"Free": {"category": "free", "decision": "admit"},
			"Looked-At": {"category": "free", "decision": "review"},
			"Refused": {"category": "free", "decision": "refuse"},
			"Alike": {"category": "alike", "decision": "admit", "export_under": ["Alike", "Alike-2"]},
			"Alike-2": {"category": "alike", "decision": "admit", "export_under": ["Alike-2"]},
			"Bound": {"category": "bound", "decision": "admit"},
			"Lost-Category": {"category": "gone", "decision": "admit"},
			"Lost-Decision": {"category": "free"},
			"Odd-Decision": {"category": "free", "decision": "perhaps"},
			"Lost-List": {"category": "alike", "decision": "admit"},
		},
	},
	"sources": {"purposes": ["train", "eval"]},
}

_inside(purpose) := {"purpose": purpose, "exported": false, "export": []}

_exported(purpose, alternatives) := {"purpose": purpose, "exported": true, "export": alternatives}

_admit := {"admit"}

_review := {"admit", "review"}

_keys := object.keys(_policy.licenses.licenses) | {"Nowhere", "NOASSERTION"}

# The keys with verdict `admit`, and those with that or `review`.
test_verdict_is_the_stricter_of_row_and_category if {
	use := _inside("train")
	admitted := {key | some key in _keys; license.best_verdict_in([[key]], use, _admit) with data.policy as _policy}
	reviewable := {key | some key in _keys; license.best_verdict_in([[key]], use, _review) with data.policy as _policy}
	[admitted, reviewable] == [{"Free"}, {"Free", "Looked-At", "Alike", "Alike-2", "Lost-List"}]
}

test_verdict_depends_on_the_purpose if {
	use := _inside("eval")
	admitted := {key | some key in _keys; license.best_verdict_in([[key]], use, _admit) with data.policy as _policy}
	reviewable := {key | some key in _keys; license.best_verdict_in([[key]], use, _review) with data.policy as _policy}
	clean := {"Free", "Alike", "Alike-2", "Lost-List"}
	[admitted, reviewable] == [clean, (clean | {"Looked-At", "Bound"})]
}

# Alike-2 may not go out under Alike, Bound not at all, and a row that lost its list under nothing.
test_verdict_depends_on_the_export if {
	use := _exported("eval", [["Alike"]])
	admitted := {key | some key in _keys; license.best_verdict_in([[key]], use, _admit) with data.policy as _policy}
	reviewable := {key | some key in _keys; license.best_verdict_in([[key]], use, _review) with data.policy as _policy}
	[admitted, reviewable] == [{"Free", "Alike"}, {"Free", "Alike", "Looked-At"}]
}

_exports := {
	"listed": [["Alike"]],
	"both listed": [["Alike", "Alike-2"]],
	"a choice of listed ones": [["Alike"], ["Alike-2"]],
	"one of two is not listed": [["Alike", "Free"]],
	"the receiver may choose another": [["Alike"], ["Free"]],
	"an empty alternative": [["Alike"], []],
	"an alternative that is none": [["Alike"], null],
	"nothing": [],
	"null": null,
}

test_listed_means_every_license_of_every_alternative if {
	held := {name |
		some name, alternatives in _exports
		license.best_verdict_in([["Alike"]], _exported("eval", alternatives), _admit) with data.policy as _policy
	}
	held == {"listed", "both listed", "a choice of listed ones"}
}

_labels := {
	"one": [["Free"]],
	"the best alternative counts": [["Bound"], ["Free"]],
	"an unknown alternative does not": [["Nowhere"], ["Free"]],
	"the worst key counts": [["Bound", "Free"]],
	"an unknown key counts": [["Free", "Nowhere"]],
	"an alternative to review": [["Looked-At", "Free"], ["Bound"]],
	"no alternative": [],
	"an empty alternative": [[]],
	"an empty object": [{}],
	"an object of keys": [{"a": "Free"}],
	"a key that is null": [[null]],
	"no list in the list": ["Free"],
	"null": null,
	"text": "Free",
	"an object of alternatives": {"a": ["Free"]},
}

test_or_takes_the_best_and_the_worst if {
	use := _inside("train")
	admitted := {name |
		some name, label in _labels
		license.best_verdict_in(label, use, _admit) with data.policy as _policy
	}
	reviewable := {name |
		some name, label in _labels
		license.best_verdict_in(label, use, _review) with data.policy as _policy
	}
	clean := {"one", "the best alternative counts", "an unknown alternative does not"}
	[admitted, reviewable] == [clean, (clean | {"an alternative to review"})]
}

test_any_known if {
	{name | some name, label in _labels; license.any_known(label) with data.policy as _policy} == {
		"one",
		"the best alternative counts",
		"an unknown alternative does not",
		"the worst key counts",
		"an alternative to review",
	}
}

test_any_known_needs_a_whole_row if {
	{key | some key in _keys; license.any_known([[key]]) with data.policy as _policy} == {
		"Free", "Looked-At", "Refused", "Alike", "Alike-2", "Bound", "Lost-List",
	}
}

test_all_known if {
	{name | some name, label in _labels; license.all_known(label) with data.policy as _policy} == {
		"one",
		"the best alternative counts",
		"the worst key counts",
		"an alternative to review",
	}
}

_requests := {
	"inside": {"purpose": "train", "exported": false},
	"exported": {"purpose": "eval", "exported": true, "export_license": {"alternatives": [["Alike"]]}},
	"unknown export license": {"purpose": "eval", "exported": true, "export_license": {"alternatives": [["Nowhere"]]}},
	"no export license": {"purpose": "eval", "exported": true},
	"purpose that is another field of a category": {"purpose": "export", "exported": false},
	"the same, exported": {"purpose": "export", "exported": true, "export_license": {"alternatives": [["Alike"]]}},
	"inside, a license left over": {"purpose": "eval", "exported": false, "export_license": {"alternatives": [["Alike"]]}},
	"a license, no word on export": {"purpose": "eval", "export_license": {"alternatives": [["Alike"]]}},
	"no purpose": {"exported": false},
	"no word on export": {"purpose": "train"},
	"export is null": {"purpose": "train", "exported": null},
}

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_material(key, word) := {
	"content": {"sha256": _hash},
	"license": {"alternatives": [[key]], "decisions": [{"sha256": _hash, "decision": word, "decided_at": 100}]},
}

_accepted := _material("Free", "accepted")

_materials := {
	"accepted": _accepted,
	"best alternative": object.union(_accepted, {"license": {"alternatives": [["Bound"], ["Free"]]}}),
	"table reviews": _material("Alike", "accepted"),
	"table refuses": _material("Bound", "accepted"),
	"table does not know": _material("Nowhere", "accepted"),
	"decision reviews": _material("Free", "review_required"),
	"decision refuses": _material("Free", "incompatible"),
	"decision leaves it open": _material("Free", "unknown"),
	"decision of another word": _material("Free", "yes"),
	"no decision": object.union(_accepted, {"license": {"decisions": []}}),
	"decisions lost": json.remove(_accepted, ["license/decisions"]),
	"label does not parse": json.remove(_accepted, ["license/alternatives"]),
	"no license": json.remove(_accepted, ["license"]),
	"no content": json.remove(_accepted, ["content"]),
}

# The stricter of table and decision wins.
test_material if {
	use := _inside("train")
	known := {name | some name, material in _materials; license.known(material) with data.policy as _policy}
	compatible := {name |
		some name, material in _materials
		license.compatible(material, use) with data.policy as _policy
	}
	admitted := {name | some name, material in _materials; license.admitted(material, use) with data.policy as _policy}
	admitted == {"accepted", "best alternative"}
	compatible == admitted | {"table reviews", "decision reviews"}
	known == compatible | {"table refuses", "decision refuses"}
}

test_use_needs_the_purposes if {
	request := {"purpose": "train", "exported": false}
	every policy in [{}, json.remove(_policy, ["sources/purposes"]), {"sources": {"purposes": []}}] {
		not license.use(request) with data.policy as policy
	}
}

test_use if {
	{name: use | some name, request in _requests; use := license.use(request) with data.policy as _policy} == {
		"inside": {"purpose": "train", "exported": false, "export": []},
		"inside, a license left over": {"purpose": "eval", "exported": false, "export": []},
		"exported": {"purpose": "eval", "exported": true, "export": [["Alike"]]},
	}
}

test_no_word_on_export if {
	every key in {"Free", "Alike"} {
		not license.best_verdict_in([[key]], {"purpose": "eval", "export": [["Alike"]]}, _admit) with data.policy as _policy
	}
}

test_every_value_missing if {
	use := _exported("eval", [["Alike"]])
	license.best_verdict_in([["Alike"]], use, _admit) with data.policy as _policy
	every gone in [
		"licenses",
		"licenses/categories",
		"licenses/categories/alike",
		"licenses/categories/alike/eval",
		"licenses/categories/alike/export",
		"licenses/licenses",
		"licenses/licenses/Alike",
		"licenses/licenses/Alike/category",
		"licenses/licenses/Alike/decision",
		"licenses/licenses/Alike/export_under",
	] {
		not license.best_verdict_in([["Alike"]], use, _admit) with data.policy as json.remove(_policy, [gone])
	}
}
