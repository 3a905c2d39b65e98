package admission.requirements.sandbox.boundary

import data.admission.lib.boundary
import future.keywords.not

# METADATA
# title: The request lists every boundary
# description: The engine requires all boundaries, whatever the request states.
# custom:
#   code: boundaries_incomplete
#   fixed: true
#   remedy: Report this engine fault with the decision id
# labels:
#   row: D19
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
#   reads: ["sandbox.profiles.{profile}", sandbox.floor.boundaries]
#   after: [profile_below_floor, probe_stale]
# labels:
#   row: D19, H05, C81, A94, E33
#   threat: ACE
enforced(required) if boundary.proven(input.profile, required.id)

# METADATA
# title: Every boundary that the caller declares is enforced
# description: The table of boundaries lists what each declared word requires; all of it must be enforced.
# custom:
#   code: declared_boundary_not_enforced
#   fixed: true
#   each: declared
#   empty: allowed
#   remedy: Run `engine doctor --sandbox`, then install or enable what it reports as missing
#   after: [profile_below_floor, probe_stale]
# labels:
#   row: D19, C81
#   threat: ACE
declared_held(declaration) if {
	names := boundary.boundaries_of[declaration.id]
	count(names) > 0
	every name in names { boundary.proven(input.profile, name) }
}
