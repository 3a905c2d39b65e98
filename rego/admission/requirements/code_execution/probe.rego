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
#   remedy: Run `engine doctor --sandbox` to see what is missing; then ask again
#   reads: [sandbox.profiles]
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
#     - static_policy_violation
#     - max_seconds
#     - profile_unknown
# labels:
#   row: H05, A94
tried if boundary.tried(code_execution.profile)

# METADATA
# title: The probe result is from this machine in its current state
# description: A result from another machine, from before a change, or that was edited does not count.
# custom:
#   code: probe_foreign
#   fixed: true
#   remedy: Ask again in a minute, after the next probe; `engine doctor --sandbox` shows what is missing
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
#     - static_policy_violation
#     - max_seconds
#     - profile_unknown
#     - probe_missing
# labels:
#   row: H05
made_here if boundary.tried_here(code_execution.profile)

# METADATA
# title: The probe result is recent
# description: Its maximum age is a value in policy/sandbox.yaml.
# custom:
#   code: probe_stale
#   fixed: true
#   remedy: Ask again in a minute, after the next probe; `engine doctor --sandbox` shows what is missing
#   reads: [sandbox.probe_max_age_seconds]
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
#     - static_policy_violation
#     - max_seconds
#     - profile_unknown
#     - probe_missing
#     - probe_foreign
# labels:
#   row: H05
recent if boundary.tried_recently(code_execution.profile)
