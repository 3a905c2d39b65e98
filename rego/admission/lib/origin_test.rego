package admission.lib.origin_test

import data.admission.lib.origin
import future.keywords.not

_url := {"canonical": true, "scheme": "https", "host": "data.example.org", "port": 443}

_records := {
	"fixture": {"kind": "fixture", "remote": false},
	"synthetic": {"kind": "synthetic", "remote": false},
	"transformed": {"kind": "transformed", "remote": false},
	"external": {"kind": "external", "remote": true, "url": _url},
	"fixture with an address": {"kind": "fixture", "remote": true, "url": _url},
	"fixture that lost its address": {"kind": "fixture", "remote": true},
	"external without an address": {"kind": "external", "remote": false},
	"external that lost its address": {"kind": "external", "remote": true},
	"external with half an address": {"kind": "external", "remote": true, "url": "https://data.example.org/"},
	"unknown kind": {"kind": "other", "remote": false},
	"no kind": {"remote": false},
	"kind is null": {"kind": null, "remote": false},
	"remote missing": {"kind": "fixture"},
	"remote is null": {"kind": "fixture", "remote": null},
	"remote is text": {"kind": "external", "remote": "true", "url": _url},
	"nothing": {},
}

test_offline if {
	{name | some name, record in _records; origin.offline(record)} == {"fixture", "synthetic", "transformed"}
}

test_external if {
	{name | some name, record in _records; origin.external(record)} == {"external"}
}
