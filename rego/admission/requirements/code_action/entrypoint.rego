package admission.requirements.code_action.entrypoint

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# title: The entry point is stated
# description: Text that is not blank.
# custom:
#   code: "invalid_action:entrypoint"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#     - "invalid_action:not_object"
#     - "invalid_action:id"
#     - "invalid_action:language"
#   remedy: State the entry point
# labels:
#   row: C11, C15
stated if code_contract.entrypoint_stated

# METADATA
# title: The entry point names no folder
# description: A name with / or \ in it is a path.
# custom:
#   code: "invalid_action:entrypoint_path"
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
#   remedy: Use only the file name
# labels:
#   row: C13
is_name if code_contract.entrypoint_is_name

# METADATA
# title: The entry point is one of those we admit
# description: Exact names, without outer blanks, in policy/code.yaml.
# custom:
#   code: "invalid_action:entrypoint_denied"
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
#   remedy: Use an entry point that is listed in policy/code.yaml
#   reads: [code.entrypoints]
# labels:
#   row: C14
admitted if code_contract.entrypoint_admitted
