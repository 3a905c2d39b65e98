package admission.requirements.code_action.text

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# title: The action holds code
# description: Text that is not blank, valid UTF-8 and without null characters.
# custom:
#   code: "invalid_action:code"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#     - "invalid_action:not_object"
#     - "invalid_action:id"
#     - "invalid_action:language"
#     - "invalid_action:entrypoint"
#   remedy: Give the code of the action as text
# labels:
#   row: C11, H18
code_stated if code_contract.code_stated

# METADATA
# title: The code is within its length limit
# description: Counted in characters of the code as it came. The hint max_code_chars counts within the bounds of
#   policy/code.yaml.
# custom:
#   code: "invalid_action:code_too_long"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "max_seconds"
#     - "invalid_action:not_object"
#     - "invalid_action:id"
#     - "invalid_action:language"
#     - "invalid_action:entrypoint"
#     - "invalid_action:code"
#   remedy: Propose shorter code
#   reads: [code.hints.max_code_chars]
# labels:
#   row: C07, C12
short_enough if code_contract.code_short_enough
