package admission.requirements.code_action.fields

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# title: The action is an object
# description: Anything else has no fields to check.
# custom:
#   code: "invalid_action:not_object"
#   after: [attempts_exhausted]
#   remedy: Propose an object with id, language, entrypoint, code and input_payload
# labels:
#   row: C10
#   threat: ACE
is_action if code_contract.is_action

# METADATA
# title: The id of the action is printable text of 1 to 128 characters
# description: Surrounding spaces do not count; control characters are refused.
# custom:
#   code: "invalid_action:id"
#   after: ["invalid_action:not_object"]
#   remedy: Give the action an id of 1 to 128 printable characters, such as c1
# labels:
#   row: C11, C15
#   threat: ACE
id_stated if code_contract.id_stated

# METADATA
# title: The language of the action is stated
# description: Whether the language is admitted is checked before the action runs.
# custom:
#   code: "invalid_action:language"
#   after: ["invalid_action:id"]
#   remedy: State the language in printable characters, such as python
# labels:
#   row: C11, C15
#   threat: ACE
language_stated if code_contract.language_stated

# METADATA
# title: The payload of the action is an object
# description: The program reads it from standard input as JSON.
# custom:
#   code: "invalid_action:input_payload"
#   after: ["invalid_action:code_too_long"]
#   remedy: Pass the input as an object; it may be empty
# labels:
#   row: C11
#   threat: ACE
payload_is_object if code_contract.payload_is_object

# METADATA
# title: The action has only known fields
# description: An ignored field may have been meant to change the run.
# custom:
#   code: "invalid_action:unknown_field"
#   after: ["invalid_action:entrypoint_denied"]
#   remedy: Remove all fields other than id, language, entrypoint, code and input_payload
# labels:
#   row: C11
#   threat: ACE
no_unknown_fields if code_contract.no_unknown_fields
