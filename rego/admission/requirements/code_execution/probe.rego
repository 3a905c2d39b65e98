package admission.requirements.code_execution.probe

import data.admission.lib.boundary
import data.admission.lib.code_execution
import future.keywords.not

# METADATA
# title: The profile's sandbox was probed on this machine
# description: An untested sandbox is not known to enforce anything.
# custom:
#   code: probe_missing
#   fixed: true
#   remedy: Run `engine doctor --sandbox` to see what is missing; then repeat the request
#   reads: [sandbox.profiles]
#   after: [profile_unknown]
# labels:
#   row: H05, A94
#   threat: ACE
tried if boundary.probed(code_execution.profile)

# METADATA
# title: The probe result is from this machine in its current state
# description: A result that is from another machine, predates a change or was edited does not count.
# custom:
#   code: probe_foreign
#   fixed: true
#   remedy: Retry in a minute, after the next probe; `engine doctor --sandbox` shows what is missing
#   after: [probe_missing]
# labels:
#   row: H05
#   threat: ACE
made_here if boundary.probed_here(code_execution.profile)

# METADATA
# title: The probe result is recent
# description: Its maximum age and the tolerated clock skew are values in policy/sandbox.yaml.
# custom:
#   code: probe_stale
#   fixed: true
#   remedy: Retry in a minute, after the next probe; `engine doctor --sandbox` shows what is missing
#   reads: [sandbox.probe_max_age_seconds, sandbox.probe_clock_skew_seconds]
#   after: [probe_foreign]
# labels:
#   row: H05
#   threat: ACE
recent if boundary.probed_recently(code_execution.profile)
