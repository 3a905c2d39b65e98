package admission.requirements.code_execution.profile

import data.admission.lib.code_execution
import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# title: The profile is known
# description: Profiles and their backends are values in policy/sandbox.yaml.
# custom:
#   code: profile_unknown
#   waivable: false
#   remedy: Name a profile of policy/sandbox.yaml whose backend is listed there
#   reads: [code.execution, sandbox.profiles]
#   after: [max_seconds]
# labels:
#   row: A94, H05
#   threat: ACE
known if is_string(sandbox.isolation(code_execution.profile))

# METADATA
# title: The profile is the language's own or one of its alternatives
# description: Alternatives are values in policy/sandbox.yaml.
# custom:
#   code: profile_not_admitted
#   waivable: false
#   remedy: Leave the profile out, or name one that the profile of the language lists under `alternatives`
#   reads: [code.execution, sandbox.profiles]
#   after: [profile_unknown]
# labels:
#   row: A94
#   threat: ACE
admitted if input.profile.stated == false

admitted if {
	input.profile.stated == true
	input.profile.value == code_execution.default_profile
}

admitted if {
	input.profile.stated == true
	input.profile.value in data.policy.sandbox.profiles[code_execution.default_profile].alternatives
}

# METADATA
# title: The profile meets the floor
# description: The build refuses a profile below the floor; this refuses its use.
# custom:
#   code: profile_below_floor
#   fixed: true
#   remedy: Change the profile to meet the floor in policy/sandbox.yaml
#   reads: [sandbox.profiles, sandbox.floor]
#   after: [profile_unknown]
# labels:
#   row: A84, H05
#   threat: ACE
within_floor if sandbox.within_floor(code_execution.profile, input.role)

# METADATA
# title: Stated limits do not exceed those of the profile
# description: A request may lower a limit, never raise it.
# custom:
#   code: limits_loosened
#   waivable: false
#   each: tighten
#   empty: allowed
#   remedy: State a lower limit, or leave it out to get that of the profile
#   reads: [sandbox.profiles]
#   after: [profile_below_floor]
# labels:
#   row: C78, A84
#   threat: ACE
no_higher(amount) if sandbox.no_higher(code_execution.profile, input.role, amount)
