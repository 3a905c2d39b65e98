package admission.requirements.network_response.content_test

import data.admission.requirements.network_response.content
import future.keywords.not

_clean := {
	"head": {"media_type": "application/json"},
	"content": {"types": ["application/json", "text/*"], "one_reading": true},
}

_text := object.union(_clean, {"head": {"media_type": "text/csv"}})

_lines := {"head": {"media_type": "application/x-ndjson"}, "content": {"types": ["text/*"], "one_reading": true}}

_policy := {"networks": {"fetch": {"text_types": ["application/x-ndjson"]}}}

test_text_by_the_policy if {
	content.as_stated with input as _lines with data.policy as _policy
	not content.as_stated with input as _lines with data.policy as {}
	every types in [["image/png"], ["application/json"], []] {
		request := object.union(_lines, {"content": {"types": types}})
		not content.as_stated with input as request with data.policy as _policy
	}
	other := object.union(_lines, {"head": {"media_type": "application/octet-stream"}})
	not content.as_stated with input as other with data.policy as _policy
}

test_json_by_its_suffix if {
	geo := object.union(_clean, {"head": {"media_type": "application/geo+json"}})
	content.as_stated with input as geo
	not content.as_stated with input as object.union(geo, {"content": {"types": ["text/*"]}})
	not content.as_stated with input as object.union(geo, {"head": {"media_type": "application/geo+json2"}})
	not content.as_stated with input as object.union(geo, {"head": {"media_type": "application/geojson"}})
}

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
