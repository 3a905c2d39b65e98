# What a profile of policy/sandbox.yaml gives: only where it is complete and within the floor.
package admission.lib.sandbox

import data.admission.lib.boundary
import future.keywords.not

# Every limit there is.
_limits := {
	"wall_seconds", "cpu_seconds", "memory_bytes", "processes", "open_files", "file_bytes", "disk_bytes",
	"stdout_bytes", "stderr_bytes", "artifact_files", "artifact_bytes",
}

# METADATA
# description: What the backend of a profile is.
isolation(profile) := found if {
	found := data.policy.sandbox.backends[_profile(profile).backend].isolation
	is_string(found)
}

# METADATA
# description: Whether a profile admits nothing beyond the floor for programs in this role.
within_floor(profile, role) if {
	count(_limits) > 0
	count(boundary.names) > 0
	every limit in _limits { is_number(most(profile, role, limit)) }
	every name in boundary.names { _no_looser(profile, name) }
}

# METADATA
# description: The most of a limit that a profile gives programs in this role.
most(profile, role, limit) := found if {
	found := _bounds(profile, role)[limit]
	ceiling := data.policy.sandbox.floor.most[limit]
	is_number(found)
	is_number(ceiling)
	found <= ceiling
}

# METADATA
# description: Whether a limit that a request states is one, and no higher than that of the profile.
no_higher(profile, role, amount) if {
	is_number(amount.value)
	_some(amount)
	ceiling := most(profile, role, amount.id)
	is_number(ceiling)
	amount.value <= ceiling
}

# Nothing runs in no time or with no memory; only files may be none.
_some(amount) if {
	is_number(amount.value)
	amount.value > 0
}

_some(amount) if {
	amount.value == 0
	amount.id in {"artifact_files", "artifact_bytes"}
}

# METADATA
# description: All limits of a profile for programs in this role, or the lower ones that the request states.
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
# description: What every permit for a sandbox says besides its limits.
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
# description: A limit of the profile, or the lower one that the request states.
# custom:
#   proof: the limit of the profile always counts and a stated one only lowers it; one without a number is refused
_bound(profile, role, limit) := min({most(profile, role, limit)} | {amount.value |
	some amount in input.tighten
	amount.id == limit
})

_no_looser(profile, name) if {
	held := _profile(profile).boundaries[name]
	is_array(held)
	count(held) > 0
	every kind in held { kind in data.policy.sandbox.floor.boundaries[name] }
}

_profile(name) := data.policy.sandbox.profiles[name]
