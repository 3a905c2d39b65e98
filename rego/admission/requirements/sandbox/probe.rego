package admission.requirements.sandbox.probe

import data.admission.lib.boundary
import future.keywords.not

# METADATA
# title: The sandbox of the profile was tried on this machine
# description: What was never tried is not known to hold anything.
# custom:
#   code: probe_missing
#   fixed: true
#   remedy: Run `engine doctor --sandbox` to see what is missing; then ask again
#   reads: ["sandbox.profiles.{profile}"]
#   after: [profile_unknown]
# labels:
#   row: H05, A94
tried if boundary.tried(input.profile)

# METADATA
# title: The result of trying it is of this machine as it is now
# description: A result from elsewhere, from before something was changed, or that somebody edited counts for nothing.
# custom:
#   code: probe_foreign
#   fixed: true
#   remedy: Ask again in a minute, the engine tries the sandbox anew; `engine doctor --sandbox` tells what is missing
#   after: [profile_unknown, probe_missing]
# labels:
#   row: H05
made_here if boundary.tried_here(input.profile)

# METADATA
# title: The result of trying it is recent
# description: For how long one counts is a value in policy/sandbox.yaml.
# custom:
#   code: probe_stale
#   fixed: true
#   remedy: Ask again in a minute, the engine tries the sandbox anew; `engine doctor --sandbox` tells what is missing
#   reads: [sandbox.probe_max_age_seconds]
#   after: [profile_unknown, probe_missing, probe_foreign]
# labels:
#   row: H05
recent if boundary.tried_recently(input.profile)
