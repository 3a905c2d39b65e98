package admission.requirements.source.record_test

import data.admission.requirements.source.record
import future.keywords.not

_url := {"canonical": true, "scheme": "https", "host": "data.example.org", "port": 443}

_fixture := {"id": "contacts-1", "id_count": 1, "kind": "fixture", "remote": false}

_external := {"id": "contacts-2", "id_count": 1, "kind": "external", "remote": true, "url": _url}

_policy := {"sources": {"kinds": ["fixture", "external"]}}

test_id_unique if {
	records := {
		"clean": _fixture,
		"two with one id": object.union(_fixture, {"id_count": 2}),
		"count missing": json.remove(_fixture, ["id_count"]),
		"count is true": object.union(_fixture, {"id_count": true}),
		"no id": json.remove(_fixture, ["id"]),
		"id is empty": object.union(_fixture, {"id": ""}),
		"id is null": object.union(_fixture, {"id": null}),
	}
	{name | some name, one in records; record.id_unique(one)} == {"clean"}
}

test_kind_admitted if {
	records := {
		"fixture": _fixture,
		"external": _external,
		"synthetic": object.union(_fixture, {"kind": "synthetic"}),
		"no kind": json.remove(_fixture, ["kind"]),
		"kind is null": object.union(_fixture, {"kind": null}),
	}
	held := {name | some name, one in records; record.kind_admitted(one) with data.policy as _policy}
	held == {"fixture", "external"}
}

test_kinds_missing if {
	every policy in [{}, {"sources": {}}, {"sources": {"kinds": []}}, {"sources": {"kinds": ["external"]}}] {
		not record.kind_admitted(_fixture) with data.policy as policy
	}
}

test_kind_consistent if {
	records := {
		"fixture": _fixture,
		"external": _external,
		"fixture with an address": object.union(_fixture, {"remote": true, "url": _url}),
		"fixture that lost its address": object.union(_fixture, {"remote": true}),
		"external without an address": json.remove(_external, ["url"]),
		"no kind": json.remove(_fixture, ["kind"]),
		"remote missing": json.remove(_fixture, ["remote"]),
	}
	{name | some name, one in records; record.kind_consistent(one)} == {"fixture", "external"}
}
