package admission.requirements.code_action.fields

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# title: The action is an object
# description: What else it might be has no fields to look at.
# custom:
#   code: "invalid_action:not_object"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#   remedy: Propose an object with id, language, entrypoint, code and input_payload
# labels:
#   row: C10
is_action if code_contract.is_action

# METADATA
# title: The id of the action is text that can stand in a record
# description: Without outer blanks it is not empty, not longer than 128 characters, and has no control characters.
# custom:
#   code: "invalid_action:id"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#     - "invalid_action:not_object"
#   remedy: Give the action an id, such as c1
# labels:
#   row: C11, C15
id_stated if code_contract.id_stated

# METADATA
# title: The language of the action is stated
# description: Any word will do here; which languages are admitted is asked for when the action would be run.
# custom:
#   code: "invalid_action:language"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#     - "invalid_action:not_object"
#     - "invalid_action:id"
#   remedy: State the language of the code in a word, such as python
# labels:
#   row: C11, C15
language_stated if code_contract.language_stated

# METADATA
# title: The payload of the action is an object
# description: It is what the program reads from its standard input, as JSON.
# custom:
#   code: "invalid_action:input_payload"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#     - "invalid_action:not_object"
#     - "invalid_action:id"
#     - "invalid_action:language"
#     - "invalid_action:entrypoint"
#     - "invalid_action:code"
#     - "invalid_action:code_too_long"
#   remedy: Give the program its input as an object; an empty one will do
# labels:
#   row: C11
payload_is_object if code_contract.payload_is_object

# METADATA
# title: The action has no fields but its own
# description: A field that nobody reads may be meant to change what is done, and would not.
# custom:
#   code: "invalid_action:unknown_field"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#     - "invalid_action:not_object"
#     - "invalid_action:id"
#     - "invalid_action:language"
#     - "invalid_action:entrypoint"
#     - "invalid_action:code"
#     - "invalid_action:code_too_long"
#     - "invalid_action:input_payload"
#     - "invalid_action:entrypoint_path"
#     - "invalid_action:entrypoint_denied"
#   remedy: Take all fields out but id, language, entrypoint, code and input_payload
# labels:
#   row: C11
nothing_further if code_contract.nothing_further
