package admission.requirements.code_execution.language

import data.admission.lib.code
import data.admission.lib.code_execution
import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The language is admitted for proposals
# description: Languages are values in policy/code.yaml; hints only narrow them.
# custom:
#   code: language_denied_policy
#   remedy: Propose the action in a language of policy/code.yaml that the hint allowed_languages names, or omit the hint
#   reads: [code.languages]
#   after: ["invalid_action:entrypoint_denied"]
# labels:
#   row: C04, C17, C75, H19
#   threat: ACE
language_admitted if input.action.language.value in code.languages

# METADATA
# title: The language is admitted for execution
# description: A language that may be proposed need not be executable. Hints add none.
# custom:
#   code: language_denied_execution
#   remedy: Propose the action in a language that policy/code.yaml lists under execution
#   reads: ["code.execution.{action.language.value}"]
#   after: [language_denied_policy]
# labels:
#   row: C04, C18, C53, C71, C75, C78
#   threat: ACE
language_executable if is_string(data.policy.code.execution[input.action.language.value])

# METADATA
# title: The code passes its scan
# description: Point code_scan names each violation. The scan explains and filters; the sandbox is what confines a
#   program. A profile with an advisory scan runs a program in spite of findings, if every boundary is proven on this
#   machine and all of the code was scanned.
# custom:
#   code: static_policy_violation
#   remedy: Correct the findings of point code_scan. Or, if the scan could read all of the code, name a profile with an
#     advisory scan, such as `--profile analysis`, on a machine where `engine doctor --sandbox` shows every boundary as
#     enforced
#   reads: ["code.scan.{action.language.value}", "sandbox.profiles.{profile}.scan"]
#   after: [language_denied_execution]
# labels:
#   row: C19, C29, C75, E08, H03
#   threat: ACE
scan_clean if {
	input.scan.language == input.action.language.value
	code_scan.clean
}

scan_clean if {
	input.scan.language == input.action.language.value
	code_scan.readable
	code_execution.scan == "advisory"
	code_execution.contained
}
