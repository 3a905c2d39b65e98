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
#   reads: ["sandbox.profiles.{profile}", sandbox.floor.boundaries]
#   after: [profile_unknown, profile_below_floor, probe_missing, probe_foreign, probe_stale]
# labels:
#   row: D19, H05, C81, A94, E33
enforced(needed) if boundary.proven(input.profile, needed.id)

# METADATA
# title: Every boundary that the caller declares is enforced
# description: The table of boundaries lists what each word requires; all of it must be enforced.
# custom:
#   code: declared_boundary_not_enforced
#   fixed: true
#   each: declared
#   empty: allowed
#   remedy: Run `engine doctor --sandbox`, and install or switch on what it names
#   after: [profile_unknown, profile_below_floor, probe_missing, probe_foreign, probe_stale]
# labels:
#   row: D19, C81
declared_held(one) if {
	behind := boundary.behind[one.id]
	count(behind) > 0
	every name in behind { boundary.proven(input.profile, name) }
}
