package admission.requirements.sandbox.profile

import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# title: The profile is one that we know
# description: Profiles and the kinds of sandboxes that they name are values in policy/sandbox.yaml.
# custom:
#   code: profile_unknown
#   remedy: Name a profile of policy/sandbox.yaml whose backend is there too
#   reads: ["sandbox.profiles.{profile}", sandbox.backends]
# labels:
#   row: A94
known if is_string(sandbox.isolation(input.profile))

# METADATA
# title: The profile is not below the floor
# description: The build refuses such a profile; this refuses its use.
# custom:
#   code: profile_below_floor
#   fixed: true
#   remedy: Bring limits and boundaries of the profile within the floor of policy/sandbox.yaml
#   reads: ["sandbox.profiles.{profile}", sandbox.floor]
#   after: [profile_unknown]
within_floor if sandbox.within_floor(input.profile, "solution")

# METADATA
# title: The sandbox is of the kind that the caller thinks it is
# description: Whoever names a backend relies on it, so another one is no answer. A plain subprocess is never one.
# custom:
#   code: backend_not_of_profile
#   remedy: Leave the backend out, or name a profile with this backend
#   reads: ["sandbox.profiles.{profile}"]
#   after: [profile_unknown]
# labels:
#   row: A94, C80
backend_as_stated if input.backend.stated == false

backend_as_stated if {
	input.backend.stated == true
	input.backend.value == data.policy.sandbox.profiles[input.profile].backend
}

# METADATA
# title: A stated limit is no higher than that of the profile
# description: A request may ask for less and never for more.
# custom:
#   code: limits_loosened
#   each: tighten
#   empty: allowed
#   remedy: State a lower limit, or leave it out to get that of the profile
#   reads: ["sandbox.profiles.{profile}"]
#   after: [profile_unknown, profile_below_floor]
no_higher(amount) if sandbox.no_higher(input.profile, "solution", amount)
