package admission.requirements.sandbox.profile

import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# title: The profile is known
# description: Profiles and their backends are values in policy/sandbox.yaml.
# custom:
#   code: profile_unknown
#   waivable: false
#   remedy: Name a profile of policy/sandbox.yaml whose backend is listed there
#   reads: ["sandbox.profiles.{profile}", sandbox.backends]
# labels:
#   row: A94
#   threat: ACE, DoS
known if is_string(sandbox.isolation(input.profile))

# METADATA
# title: The profile meets the floor
# description: The build refuses a profile below the floor; this refuses its use.
# custom:
#   code: profile_below_floor
#   fixed: true
#   remedy: Change the profile to meet the floor in policy/sandbox.yaml
#   reads: ["sandbox.profiles.{profile}", sandbox.floor]
#   after: [profile_unknown]
# labels:
#   row: C59, C65
#   threat: ACE, DoS
within_floor if sandbox.within_floor(input.profile, "solution")

# METADATA
# title: The profile uses the requested backend
# description: A caller that names a backend relies on it. A plain subprocess is never a backend.
# custom:
#   code: backend_not_of_profile
#   waivable: false
#   facts: {backend: backend.value}
#   remedy: Leave the backend out, or name a profile with this backend
#   reads: ["sandbox.profiles.{profile}.backend"]
#   after: [profile_unknown]
# labels:
#   row: A94, C80
#   threat: ACE, DoS
backend_as_stated if input.backend.stated == false

backend_as_stated if {
	input.backend.stated == true
	input.backend.value == data.policy.sandbox.profiles[input.profile].backend
}

# METADATA
# title: Stated limits do not exceed those of the profile
# description: A request may lower a limit, never raise it.
# custom:
#   code: limits_loosened
#   waivable: false
#   each: tighten
#   empty: allowed
#   facts: {requested: value}
#   remedy: State a lower limit, or leave it out to get that of the profile
#   reads: ["sandbox.profiles.{profile}.limits"]
#   after: [profile_below_floor]
# labels:
#   row: H19
#   threat: ACE, DoS
no_higher(amount) if sandbox.no_higher(input.profile, "solution", amount)
