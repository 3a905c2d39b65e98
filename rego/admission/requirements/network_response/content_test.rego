package admission.requirements.network_response.content_test

import data.admission.requirements.network_response.content
import future.keywords.not

_clean := {
	"head": {"media_type": "application/json"},
	"content": {"types": ["application/json", "text/*"], "one_reading": true},
}

_text := object.union(_clean, {"head": {"media_type": "text/csv"}})

test_as_stated if {
	content.as_stated with input as _clean
	content.as_stated with input as _text
	every request in [
		object.union(_clean, {"content": {"types": ["text/*"]}}),
		object.union(_text, {"content": {"types": ["application/json"]}}),
		object.union(_clean, {"content": {"types": []}}),
		json.remove(_clean, ["content/types"]),
		json.remove(_clean, ["head/media_type"]),
		{},
	] {
		not content.as_stated with input as request
	}
}

test_one_reading if {
	content.one_reading with input as _clean
	every request in [
		object.union(_clean, {"content": {"one_reading": false}}),
		object.union(_clean, {"content": {"one_reading": "true"}}),
		json.remove(_clean, ["content/one_reading"]),
		{},
	] {
		not content.one_reading with input as request
	}
}
