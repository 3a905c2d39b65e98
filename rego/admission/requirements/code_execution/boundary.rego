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
#   after: [max_seconds]
# labels:
#   row: H05
#   threat: ACE
complete if boundary.all_required

# METADATA
# title: The profile's sandbox passed its boundary test on this machine
# description: A declared boundary counts only if it was tested. Which mechanism may enforce each is a value in
#   policy/sandbox.yaml.
# custom:
#   code: boundary_not_enforced
#   fixed: true
#   each: required.boundaries
#   remedy: Run `engine doctor --sandbox`, then install or enable what it reports as missing
#   reads: [sandbox.profiles, sandbox.floor.boundaries]
#   after: [profile_below_floor, probe_stale]
# labels:
#   row: D19, H05, C81
#   threat: ACE
enforced(required) if boundary.proven(code_execution.profile, required.id)
