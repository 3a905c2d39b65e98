package admission.lib.tool_result_test

import data.admission.lib.tool_result
import future.keywords.not

_policy := {"results": {
	"redact": ["links"],
	"hosts": ["https://docs.example.com"],
	"data_characters": {"image": 0, "link": 200, "text": 4000, "frame": 9},
}}

test_taken_out if {
	held := {kind |
		some kind in ["secrets", "hidden_characters", "links"]
		tool_result.taken_out(kind) with data.policy as _policy
	}
	held == {"links"}
	tool_result.taken_out("links") == false with data.policy as {}
}

_links := {
	"image": {"id": "0", "kind": "image", "data": 0, "open": false},
	"image with data": {"id": "0", "kind": "image", "data": 1, "open": false},
	"image with a place": {"id": "0", "kind": "image", "data": 0, "open": true},
	"link": {"id": "0", "kind": "link", "data": 200, "open": false},
	"link with data": {"id": "0", "kind": "link", "data": 201, "open": false},
	"link with a place": {"id": "0", "kind": "link", "data": 0, "open": true},
	"text": {"id": "0", "kind": "text", "data": 4000, "open": true},
	"text with data": {"id": "0", "kind": "text", "data": 4001, "open": false},
	"named": {"id": "0", "kind": "image", "origin": "https://docs.example.com", "data": 9, "open": true},
	"other": {"id": "0", "kind": "image", "origin": "https://evil.example", "data": 9, "open": true},
	"no kind": {"id": "0", "data": 0, "open": false},
	"other kind": {"id": "0", "kind": "frame", "data": 0, "open": false},
	"no data": {"id": "0", "kind": "link", "open": false},
	"data is null": {"id": "0", "kind": "link", "data": null, "open": false},
	"place unknown": {"id": "0", "kind": "link", "data": 0},
	"no id": {"kind": "image", "origin": "https://docs.example.com", "data": 9, "open": true},
	"link without id": {"kind": "link", "data": 0, "open": false},
	"text without id": {"kind": "text", "data": 0, "open": false},
	"nothing": {},
}

test_harmless if {
	held := {name | some name, link in _links; tool_result.harmless(link) with data.policy as _policy}
	held == {"image", "link", "text", "named"}
	without := {name | some name, link in _links; tool_result.harmless(link) with data.policy as {}}
	without == set()
	wrong := {"results": {"hosts": [], "data_characters": {"link": "200", "text": null}}}
	not tool_result.harmless(_links.link) with data.policy as wrong
	not tool_result.harmless(_links.text) with data.policy as wrong
}

test_carriers if {
	links := [{"id": "0", "kind": "image", "data": 1}, {"id": "1", "kind": "text", "data": 1}, {"id": "2"}]
	found := tool_result.carriers with input as {"links": links} with data.policy as _policy
	found == ["0", "2"]
	not tool_result.carriers with input as {} with data.policy as _policy
	not tool_result.carriers with input as {"links": null} with data.policy as _policy
}
