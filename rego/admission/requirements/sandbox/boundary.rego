package admission.requirements.sandbox.boundary

import data.admission.lib.boundary
import future.keywords.not

# METADATA
# title: Every boundary is asked for
# description: The engine asks for all boundaries, whatever the request says.
# custom:
#   code: boundaries_incomplete
#   fixed: true
#   remedy: Report this with the decision id, it is a fault of the engine
complete if boundary.all_needed

# METADATA
# title: This machine was shown to hold the boundary in the sandbox of the profile
# description: A boundary that is only declared is none. Who may hold each is a value in policy/sandbox.yaml.
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
# title: A boundary that the caller declares is held
# description: What stands behind each word is in the table of boundaries; all of it has to be held.
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
