package admission.requirements.code_action.fields

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# title: The action is an object
# description: Anything else has no fields to check.
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
# title: The id of the action is printable text of 1 to 128 characters
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
# description: Which languages are admitted is checked before the action is run.
# custom:
#   code: "invalid_action:language"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#     - "invalid_action:not_object"
#     - "invalid_action:id"
#   remedy: State the language, such as python
# labels:
#   row: C11, C15
language_stated if code_contract.language_stated

# METADATA
# title: The payload of the action is an object
# description: The program reads it from standard input as JSON.
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
#   remedy: Pass the input as an object; it may be empty
# labels:
#   row: C11
payload_is_object if code_contract.payload_is_object

# METADATA
# title: The action has only known fields
# description: An ignored field may have been meant to change the run.
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
#   remedy: Remove all fields other than id, language, entrypoint, code and input_payload
# labels:
#   row: C11
nothing_further if code_contract.nothing_further
