# The limits of a profile in policy/sandbox.yaml, if it is complete and meets the floor.
package admission.lib.sandbox

import data.admission.lib.boundary
import future.keywords.not

# Names of all limits.
_limits := {
	"wall_seconds", "cpu_seconds", "memory_bytes", "processes", "open_files", "file_bytes", "disk_bytes",
	"stdout_bytes", "stderr_bytes", "artifact_files", "artifact_bytes",
}

# METADATA
# description: The backend's type of isolation.
isolation(profile) := value if {
	value := data.policy.sandbox.backends[_profile(profile).backend].isolation
	is_string(value)
}

# METADATA
# description: Whether programs may have a way out.
egress(profile) := data.policy.sandbox.backends[_profile(profile).backend].egress

# METADATA
# description: Whether a profile meets the floor for programs in this role.
within_floor(profile, role) if {
	count(_limits) > 0
	count(boundary.names) > 0
	every limit in _limits { is_number(most(profile, role, limit)) }
	every name in boundary.names { _no_looser(profile, name) }
}

# METADATA
# description: The value of a limit for programs in this role.
most(profile, role, limit) := value if {
	value := _bounds(profile, role)[limit]
	ceiling := data.policy.sandbox.floor.limits[limit]
	is_number(value)
	is_number(ceiling)
	value <= ceiling
}

# METADATA
# description: Whether a stated limit exists and does not exceed that of the profile.
no_higher(profile, role, amount) if {
	is_number(amount.value)
	_some(amount)
	ceiling := most(profile, role, amount.id)
	is_number(ceiling)
	amount.value <= ceiling
}

# Time and memory must be above zero; only artifact_files and artifact_bytes may be zero.
_some(amount) if {
	is_number(amount.value)
	amount.value > 0
}

_some(amount) if {
	amount.value == 0
	amount.id in {"artifact_files", "artifact_bytes"}
}

# METADATA
# description: All limits of a profile for programs in this role, lowered to those that the request states.
bounds(profile, role) := {
	"wall_seconds": _bound(profile, role, "wall_seconds"),
	"cpu_seconds": _bound(profile, role, "cpu_seconds"),
	"memory_bytes": _bound(profile, role, "memory_bytes"),
	"processes": _bound(profile, role, "processes"),
	"open_files": _bound(profile, role, "open_files"),
	"file_bytes": _bound(profile, role, "file_bytes"),
	"disk_bytes": _bound(profile, role, "disk_bytes"),
	"stdout_bytes": _bound(profile, role, "stdout_bytes"),
	"stderr_bytes": _bound(profile, role, "stderr_bytes"),
	"artifact_files": _bound(profile, role, "artifact_files"),
	"artifact_bytes": _bound(profile, role, "artifact_bytes"),
}

# METADATA
# description: The part of a sandbox permit that does not depend on limits.
place(profile) := {
	"profile": profile,
	"backend": _profile(profile).backend,
	"isolation": isolation(profile),
	"required": _profile(profile).boundaries,
	"network": "none",
	"redact": data.policy.sandbox.redaction,
}

_bounds(profile, "solution") := _profile(profile).limits

_bounds(profile, "verifier") := _profile(profile).verifier

# METADATA
# description: The limit of the profile, or the lower one of the request.
# custom:
#   proof: the limit of the profile always applies, and a stated one can only lower it; one without a number is refused
_bound(profile, role, limit) := min({most(profile, role, limit)} | {amount.value |
	some amount in input.tighten
	amount.id == limit
})

_no_looser(profile, name) if {
	kinds := _profile(profile).boundaries[name]
	is_array(kinds)
	count(kinds) > 0
	every kind in kinds { kind in data.policy.sandbox.floor.boundaries[name] }
}

_profile(name) := data.policy.sandbox.profiles[name]
