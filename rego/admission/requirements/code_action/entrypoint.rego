package admission.requirements.code_action.entrypoint

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# title: The entry point is stated
# description: The entry point must not be blank.
# custom:
#   code: "invalid_action:entrypoint"
#   after: ["invalid_action:language"]
#   remedy: State the entry point
# labels:
#   row: C11, C15
#   threat: ACE
stated if code_contract.entrypoint_stated

# METADATA
# title: The entry point names no folder
# description: A name with / or \ in it is a path.
# custom:
#   code: "invalid_action:entrypoint_path"
#   after: ["invalid_action:input_payload"]
#   remedy: Use only the file name
# labels:
#   row: C13
#   threat: ACE
is_name if code_contract.entrypoint_is_name

# METADATA
# title: The entry point is admitted
# description: Exact names in policy/code.yaml, without leading or trailing blanks.
# custom:
#   code: "invalid_action:entrypoint_denied"
#   after: ["invalid_action:entrypoint_path"]
#   remedy: Use an entry point that is listed in policy/code.yaml
#   reads: [code.entrypoints]
# labels:
#   row: C14
#   threat: ACE
admitted if code_contract.entrypoint_admitted
