package admission.requirements.sandbox.probe

import data.admission.lib.boundary
import future.keywords.not

# METADATA
# title: The profile's sandbox was probed on this machine
# description: An untested sandbox is not known to enforce anything.
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
# title: The probe result is from this machine in its current state
# description: A result from another machine, from before a change, or that was edited does not count.
# custom:
#   code: probe_foreign
#   fixed: true
#   remedy: Ask again in a minute, after the next probe; `engine doctor --sandbox` shows what is missing
#   after: [profile_unknown, probe_missing]
# labels:
#   row: H05
made_here if boundary.tried_here(input.profile)

# METADATA
# title: The probe result is recent
# description: Its maximum age is a value in policy/sandbox.yaml.
# custom:
#   code: probe_stale
#   fixed: true
#   remedy: Ask again in a minute, after the next probe; `engine doctor --sandbox` shows what is missing
#   reads: [sandbox.probe_max_age_seconds]
#   after: [profile_unknown, probe_missing, probe_foreign]
# labels:
#   row: H05
recent if boundary.tried_recently(input.profile)
