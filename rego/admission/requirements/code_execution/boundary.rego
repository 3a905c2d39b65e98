package admission.requirements.code_execution.boundary

import data.admission.lib.boundary
import data.admission.lib.code_execution
import future.keywords.not

# METADATA
# title: The request lists every boundary
# description: The engine requires all boundaries, whatever the request states.
# custom:
#   code: boundaries_incomplete
#   fixed: true
#   remedy: Report this engine fault with the decision id
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
#     - static_policy_violation
#     - max_seconds
# labels:
#   row: H05
complete if boundary.all_needed

# METADATA
# title: The profile's sandbox passed its boundary test on this machine
# description: A declared boundary counts only if it was tested. Which mechanism may enforce each is a value in
#   policy/sandbox.yaml.
# custom:
#   code: boundary_not_enforced
#   fixed: true
#   each: required.boundaries
#   remedy: Run `engine doctor --sandbox`, and install or switch on what it names
#   reads: [sandbox.profiles, sandbox.floor.boundaries]
#   after:
#     - "invalid_request:network_access_must_be_denied"
#     - "invalid_action:contract"
#     - "invalid_action:entrypoint_denied"
#     - language_denied_policy
#     - language_denied_execution
#     - static_policy_violation
#     - max_seconds
#     - profile_unknown
#     - profile_below_floor
#     - probe_missing
#     - probe_foreign
#     - probe_stale
# labels:
#   row: D19, H05, C81
enforced(needed) if boundary.proven(code_execution.profile, needed.id)
