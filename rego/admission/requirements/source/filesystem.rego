package admission.requirements.source.filesystem

import future.keywords.not

# METADATA
# title: The file system is isolated to the artifact subdirectory
# description: Admitted boundaries are values in policy/sandbox.yaml.
# custom:
#   code: filesystem_not_isolated
#   fixed: true
#   after: [bundle_missing]
#   field: bundle.sandbox.filesystem
#   facts: {filesystem: bundle.sandbox.filesystem}
#   remedy: Set sandbox.filesystem to artifact_subdir
#   reads: [sandbox.filesystem]
# labels:
#   row: A24
isolated if is_array(data.policy.sandbox.filesystem[input.bundle.sandbox.filesystem])

# METADATA
# title: This machine was shown to enforce the file system isolation
# description: A backend enforces the stated boundary with a mechanism that policy/sandbox.yaml accepts.
# custom:
#   code: boundary_not_enforced
#   fixed: true
#   after: [filesystem_not_isolated]
#   proof: one backend that was shown to enforce the stated boundary is enough; the others are not used
#   field: bundle.sandbox.filesystem
#   facts: {filesystem: bundle.sandbox.filesystem}
#   remedy: Run `engine doctor` to see what this machine can enforce, and use one that enforces this boundary
#   reads: [sandbox.filesystem]
# labels:
#   row: A24
enforced if {
	some boundary in input.boundaries
	boundary.boundary == input.bundle.sandbox.filesystem
	boundary.enforced == true
	boundary.kind in data.policy.sandbox.filesystem[input.bundle.sandbox.filesystem]
	is_string(boundary.backend)
	is_string(boundary.evidence)
}
