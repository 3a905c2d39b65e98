package admission.requirements.code_action.text

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# title: The action contains code
# description: The code must be valid UTF-8 without null characters, and not blank.
# custom:
#   code: "invalid_action:code"
#   after: ["invalid_action:entrypoint"]
#   remedy: Send the code of the action as text, with at least one visible character and no null character
# labels:
#   row: C11, H18
#   threat: ACE
code_stated if code_contract.code_stated

# METADATA
# title: The code is within its length limit
# description: Counted in characters of the code as received. The hint max_code_chars applies within the bounds of
#   policy/code.yaml.
# custom:
#   code: "invalid_action:code_too_long"
#   after: ["invalid_action:code"]
#   remedy: Propose shorter code, or raise the hint max_code_chars within the bounds of policy/code.yaml
#   reads: [code.hints.max_code_chars]
# labels:
#   row: C07, C12
#   threat: ACE
short_enough if code_contract.code_short_enough
