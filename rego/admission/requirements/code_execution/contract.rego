package admission.requirements.code_execution.contract

import data.admission.lib.code
import data.admission.lib.code_execution
import future.keywords.not

# METADATA
# title: The hints request no network
# description: The same rule as at point code_action, for callers that ask only here.
# custom:
#   code: "invalid_request:network_access_must_be_denied"
#   waivable: false
#   remedy: Omit network_access from the hints, or use a value listed in policy/code.yaml
#   reads: [code.hints.network_access]
# labels:
#   row: C03, C77
#   threat: ACE
network_denied if code.network_denied

# METADATA
# title: The action fits the action contract
# description: Point code_action names the part that does not fit.
# custom:
#   code: "invalid_action:contract"
#   remedy: Decide this action at point code_action, and correct its findings
#   after: ["invalid_request:network_access_must_be_denied"]
# labels:
#   row: C01, C11
#   threat: ACE
contract_holds if code_execution.contract_holds

# METADATA
# title: The entry point is admitted
# description: Checked again before anything runs.
# custom:
#   code: "invalid_action:entrypoint_denied"
#   remedy: Use an entry point that is listed in policy/code.yaml
#   reads: [code.entrypoints]
#   after: ["invalid_action:contract"]
# labels:
#   row: C14
#   threat: ACE
entrypoint_admitted if code_execution.entrypoint_admitted
