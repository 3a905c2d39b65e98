# What exactly may run, where, and its limits.
package admission.limits.code_execution

import data.admission.lib.code
import data.admission.lib.code_execution
import data.admission.lib.input_files
import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# custom:
#   proof: every part is required; without one of them there are no limits
limits := object.union_n([
	sandbox.place(code_execution.profile),
	_bounds,
	{
		"wall_seconds": min([_bounds.wall_seconds, code.exec_timeout_seconds, code_execution.remaining_seconds]),
		"stdout_bytes": min([_bounds.stdout_bytes, code_execution.streams.stdout_bytes]),
		"stderr_bytes": min([_bounds.stderr_bytes, code_execution.streams.stderr_bytes]),
		"artifact_files": _artifact_files,
		"artifact_bytes": _artifact_bytes,
		"action_id": input.action.id.value,
		"language": input.action.language.value,
		"entrypoint": input.action.entrypoint.value,
		"code_sha256": input.action.code.sha256,
		"role": input.role,
		"seed": input.seed,
		"environment": object.union(data.policy.code.environment, {"PYTHONHASHSEED": format_int(input.seed, 10)}),
		"retention_days": data.policy.code.retention_days,
		"files": _files,
		"live": _live,
		"scan": code_execution.scan,
		"packages": _packages,
	},
])

_bounds := sandbox.bounds(code_execution.profile, input.role)

_artifact_files := 0 if input.artifacts == false

_artifact_files := _bounds.artifact_files if input.artifacts == true

_artifact_bytes := 0 if input.artifacts == false

_artifact_bytes := _bounds.artifact_bytes if input.artifacts == true

# METADATA
# custom:
#   proof: the files are complete, or there are no limits
_files := files if {
	described := input_files.described
	files := [{"name": file.id, "sha256": file.sha256} | some file in described]
}

_packages := [] if input.packages.stated == false

_packages := [{"name": input.packages.value, "tree": input.packages.tree}] if input.packages.stated == true

# METADATA
# custom:
#   proof: what is missing shows less
_live := false if not code_execution.live

_live if code_execution.live
