package admission.requirements.source.content_test

import data.admission.requirements.source.content
import future.keywords.not

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_other := "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

_clean := {"sha256": _hash, "content": {"sha256": _hash, "bytes": 12}}

_records := {
	"clean": _clean,
	"no file": json.remove(_clean, ["content"]),
	"no computed hash": json.remove(_clean, ["content/sha256"]),
	"computed hash is null": object.union(_clean, {"content": {"sha256": null}}),
	"no stated hash": json.remove(_clean, ["sha256"]),
	"stated hash is null": object.union(_clean, {"sha256": null}),
	"both hashes are empty": {"sha256": "", "content": {"sha256": ""}},
	"both hashes are null": {"sha256": null, "content": {"sha256": null}},
	"another hash": object.union(_clean, {"sha256": _other}),
	"nothing": {},
}

test_content_present if {
	{name | some name, record in _records; content.content_present(record)} == {
		"clean",
		"no stated hash",
		"stated hash is null",
		"another hash",
	}
}

test_hash_stated if {
	{name | some name, record in _records; content.hash_stated(record)} == {
		"clean",
		"no file",
		"no computed hash",
		"computed hash is null",
		"another hash",
	}
}

# Empty hashes are equal too, and refused by the two requirements above.
test_hash_matches if {
	{name | some name, record in _records; content.hash_matches(record)} == {"clean", "both hashes are empty"}
}

test_declared if {
	policy := {"sources": {"extra_files": ["LICENSE", "docs/"]}}
	members := {
		"file": {"id": "LICENSE", "regular": true},
		"folder": {"id": "docs/", "regular": true},
		"link": {"id": "LICENSE", "regular": false},
		"kind missing": {"id": "LICENSE"},
		"other file": {"id": "content/LICENSE", "regular": true},
		"below": {"id": "docs/a", "regular": true},
		"path missing": {"regular": true},
	}
	{name | some name, member in members; content.declared(member) with data.policy as policy} == {"file", "folder"}
	every gone in ["sources", "sources/extra_files", "sources/extra_files/0"] {
		not content.declared(members.file) with data.policy as json.remove(policy, [gone])
	}
}

test_declared_by_name if {
	policy := {"sources": {"system_files": [".DS_Store", "._*"]}}
	members := {
		"file": {"id": ".DS_Store", "regular": true, "names": [".DS_Store"]},
		"below": {"id": "content/a/.DS_Store", "regular": true, "names": [".DS_Store"]},
		"pattern": {"id": "content/._a.json", "regular": true, "names": ["._a.json"]},
		"folder of both": {"id": "content/", "regular": true, "names": ["._a.json", ".DS_Store"]},
		"folder with another": {"id": "content/", "regular": true, "names": [".DS_Store", "a.json"]},
		"folder with many": {"id": "content/", "regular": true, "names": []},
		"other name": {"id": "content/a.DS_Store", "regular": true, "names": ["a.DS_Store"]},
		"in a folder": {"id": "._a/b", "regular": true, "names": ["b"]},
		"link": {"id": ".DS_Store", "regular": false, "names": [".DS_Store"]},
		"kind missing": {"id": ".DS_Store", "names": [".DS_Store"]},
		"names missing": {"id": ".DS_Store", "regular": true},
		"name no text": {"id": ".DS_Store", "regular": true, "names": [null]},
	}
	declared := {name | some name, member in members; content.declared(member) with data.policy as policy}
	declared == {"file", "below", "pattern", "folder of both"}
	every gone in ["sources", "sources/system_files", "sources/system_files/0"] {
		not content.declared(members.file) with data.policy as json.remove(policy, [gone])
	}
}
