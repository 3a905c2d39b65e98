# The contract of a code action, check by check, for the points that admit and that run one.
package admission.lib.code_contract

import data.admission.lib.code
import future.keywords.not

is_action if input.action.object == true

id_stated if {
	_stated(input.action.id)
	is_string(input.action.id.value)
}

language_stated if {
	_stated(input.action.language)
	is_string(input.action.language.value)
}

entrypoint_stated if _stated(input.action.entrypoint)

code_stated if {
	_stated(input.action.code)
	input.action.code.null_characters == false
	is_string(input.action.code.sha256)
	is_string(input.action.code.hash)
}

code_short_enough if {
	is_number(input.action.code.chars)
	is_number(code.max_code_chars)
	input.action.code.chars > 0
	input.action.code.chars <= code.max_code_chars
}

payload_is_object if {
	input.action.input_payload.object == true
	is_string(input.action.input_payload.sha256)
}

entrypoint_is_name if input.action.entrypoint.separators == false

entrypoint_admitted if input.action.entrypoint.value in data.policy.code.entrypoints

no_unknown_fields if input.action.unknown_fields == 0

# All of these checks.
holds if {
	is_action
	id_stated
	language_stated
	entrypoint_stated
	code_stated
	code_short_enough
	payload_is_object
	entrypoint_is_name
	entrypoint_admitted
	no_unknown_fields
}

_stated(field) if {
	field.text == true
	field.blank == false
}
