package admission.requirements.code_scan.read_test

import data.admission.requirements.code_scan.read
import future.keywords.not

_policy := {"code": {"scan": {"python": {"encodings": ["utf-8"]}}}}

_input := {"scan": {"language": "python", "parsed": true, "complete": true}}

test_encoding_allowed if {
	found := {"id": "utf-8"}
	read.encoding_allowed(found) with input as _input with data.policy as _policy
	not read.encoding_allowed(found) with input as _input with data.policy as {}
	not read.encoding_allowed(found) with input as {} with data.policy as _policy
	every other in [
		{"id": "utf-7"},
		{},
	] {
		not read.encoding_allowed(other) with input as _input with data.policy as _policy
	}
}

test_language_scanned if {
	read.language_scanned with input as _input with data.policy as _policy
	not read.language_scanned with input as {"scan": {"language": "ruby"}} with data.policy as _policy
	not read.language_scanned with input as {"scan": {}} with data.policy as _policy
	not read.language_scanned with input as _input with data.policy as {}
}

test_complete if {
	read.complete with input as _input
	not read.complete with input as {"scan": {"complete": false}}
	not read.complete with input as {"scan": {"complete": 1}}
	not read.complete with input as {}
}

test_parsed if {
	read.parsed with input as _input
	not read.parsed with input as {"scan": {"parsed": false}}
	not read.parsed with input as {"scan": {"parsed": "yes"}}
	not read.parsed with input as {}
}
