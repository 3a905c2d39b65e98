package admission.limits.transcript_test

import data.admission.limits.transcript
import future.keywords.not

_policy := {"episodes": {
	"entries": {"dialogue": "all", "monologue": "author", "hint": "recipient"},
	"quoted_words": 3,
}}

_one := {
	"author": "a", "role": "Actor", "kind": "dialogue", "recipient": "b", "poses": false, "digest": "d", "quotes": [],
}

_with(change) := object.union(_one, change)

_request(entry) := {"episode": "e", "entries": [entry]}

test_entries if {
	wanted := {
		"author": "a", "role": "Actor", "kind": "dialogue", "readers": "all", "mark_for_review": false, "digest": "d",
	}
	request := {"episode": "e", "entries": [_one]}
	transcript.limits == {"episode": "e", "entries": [wanted]} with input as request with data.policy as _policy
	monologue := transcript.limits with input as _request(_with({"kind": "monologue"})) with data.policy as _policy
	monologue.entries[0].readers == ["a"]
	hint := transcript.limits with input as _request(_with({"kind": "hint"})) with data.policy as _policy
	hint.entries[0].readers == ["a", "b"]
	every path in ["author", "role", "kind", "digest"] {
		incomplete := {"episode": "e", "entries": [json.remove(_one, [path])]}
		not transcript.limits with input as incomplete with data.policy as _policy
	}
	not transcript.limits with input as request with data.policy as {}
	not transcript.limits with input as {"episode": "e"} with data.policy as _policy
	not transcript.limits with input as {"entries": [_one]} with data.policy as _policy
}

test_marked_for_review if {
	every change in [
		{"poses": true}, {"poses": null}, {"quotes": null}, {"quotes": [{"id": "b", "words": 3, "whole": false}]},
		{"quotes": [{"id": "b", "words": 1, "whole": true}]}, {"quotes": [{"id": "b"}]},
	] {
		marked := transcript.limits with input as _request(_with(change)) with data.policy as _policy
		marked.entries[0].mark_for_review == true
	}
	short := _request(_with({"quotes": [{"id": "b", "words": 2, "whole": false}]}))
	unmarked := transcript.limits with input as short with data.policy as _policy
	unmarked.entries[0].mark_for_review == false
	unlimited := json.remove(_policy, ["episodes/quoted_words"])
	quoting := {"episode": "e", "entries": [_with({"quotes": [{"id": "b", "words": 1, "whole": false}]})]}
	found := transcript.limits with input as quoting with data.policy as unlimited
	found.entries[0].mark_for_review == true
}
