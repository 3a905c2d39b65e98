package admission.requirements.source.bundle_test

import data.admission.requirements.source.bundle
import future.keywords.not

_clean := {"bundle": {
	"id": "contacts-2026-11",
	"digest": "sha256:aa",
	"purpose": "train",
	"unchanged": true,
}}

_policy := {"sources": {"purposes": ["train", "eval"]}}

_requests := {
	"clean": _clean,
	"no bundle": {},
	"bundle is null": {"bundle": null},
	"no id": json.remove(_clean, ["bundle/id"]),
	"id is empty": object.union(_clean, {"bundle": {"id": ""}}),
	"id is a number": object.union(_clean, {"bundle": {"id": 1}}),
	"no digest": json.remove(_clean, ["bundle/digest"]),
	"changed": object.union(_clean, {"bundle": {"unchanged": false}}),
	"no word on changes": json.remove(_clean, ["bundle/unchanged"]),
	"unchanged is text": object.union(_clean, {"bundle": {"unchanged": "true"}}),
	"other purpose": object.union(_clean, {"bundle": {"purpose": "resell"}}),
	"no purpose": json.remove(_clean, ["bundle/purpose"]),
	"purpose is null": object.union(_clean, {"bundle": {"purpose": null}}),
}

_all := object.keys(_requests)

test_submitted if {
	lost := {"no bundle", "bundle is null", "no id", "id is empty", "id is a number", "no digest"}
	{name | some name, request in _requests; bundle.submitted with input as request} == _all - lost
}

test_unchanged if {
	lost := {"no bundle", "bundle is null", "changed", "no word on changes", "unchanged is text"}
	{name | some name, request in _requests; bundle.unchanged with input as request} == _all - lost
}

test_purpose_admitted if {
	lost := {"no bundle", "bundle is null", "other purpose", "no purpose", "purpose is null"}
	held := {name |
		some name, request in _requests
		bundle.purpose_admitted with input as request with data.policy as _policy
	}
	held == _all - lost
}

test_purposes_missing if {
	every policy in [{}, {"sources": {}}, {"sources": {"purposes": []}}, {"sources": {"purposes": ["eval"]}}] {
		not bundle.purpose_admitted with input as _clean with data.policy as policy
	}
}

test_fits if {
	bundle.fits with input as {"errors": []}
	not bundle.fits with input as {}
	every errors in [null, {}, "", 0, [{"id": "records.2.sha256", "kind": "missing"}], [{}], [null]] {
		not bundle.fits with input as {"errors": errors}
	}
}
