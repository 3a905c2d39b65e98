package admission.requirements.code_execution.language

import data.admission.lib.code
import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The language is one in which actions may be proposed
# description: Languages are values in policy/code.yaml; hints only narrow them.
# custom:
#   code: language_denied_policy
#   remedy: Propose the action in one of the languages of policy/code.yaml
#   reads: [code.languages]
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
# labels:
#   row: C04, C17, C75, H19
language_admitted if input.action.language.value in code.languages

# METADATA
# title: The language is one that may be executed
# description: A language that may be proposed is not yet one that runs. No hint adds one.
# custom:
#   code: language_denied_execution
#   remedy: Propose the action in a language that policy/code.yaml lists under execution
#   reads: ["code.execution.{action.language.value}"]
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
# labels:
#   row: C04, C18, C53, C71, C75, C78
language_executable if is_string(data.policy.code.execution[input.action.language.value])

# METADATA
# title: The scan finds nothing in the code that may not be there
# description: The point code_scan names each thing. The scan explains and pre-filters; what keeps a program in is
#   the sandbox.
# custom:
#   code: static_policy_violation
#   remedy: Ask the point code_scan about this code, and take out what it names
#   reads: ["code.scan.{action.language.value}"]
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
# labels:
#   row: C19, C29, C75, E08, H03
scan_clean if {
	input.scan.language == input.action.language.value
	code_scan.clean
}
