# When a sandbox counts as enforcing a boundary: a probe on this machine, in its current state, found it enforced.
package admission.lib.boundary

import future.keywords.not

# All boundaries. Each must be enforced, whatever a request or a value names.
names := {
	"files", "network", "processes", "environment", "descriptors", "capabilities", "namespaces", "syscalls",
	"memory", "memory_process", "process_count", "open_files", "file_size", "disk", "inodes", "cpu", "output",
	"time", "survivors",
}

# The boundaries that each word of a caller stands for.
boundaries_of := {
	"network": {"network"},
	"filesystem": {"files", "file_size", "disk", "inodes"},
	"cpu": {"cpu"},
	"memory": {"memory", "memory_process"},
	"processes": {"processes", "process_count", "survivors"},
}

# METADATA
# description: Whether the profile's sandbox enforces a boundary by a mechanism that profile and floor admit.
proven(profile, name) if {
	probed_recently(profile)
	some kind in data.policy.sandbox.profiles[profile].boundaries[name]
	kind in {"kernel", "supervised", "bounded"}
	[_backend(profile), name, kind] in _enforced
	kind in data.policy.sandbox.floor.boundaries[name]
}

# METADATA
# description: Which backend enforces which boundary, and by which mechanism.
# custom:
#   proof: an entry that is missing counts as not enforced, and each boundary is looked up by name
_enforced contains [result.backend, result.boundary, result.kind] if {
	some result in input.boundaries
	result.enforced == true
	is_string(result.evidence)
}

# METADATA
# description: Whether the engine requires every boundary.
all_required if {
	count(names) > 0
	every name in names { name in _required }
}

# METADATA
# custom:
#   proof: a boundary that is missing here counts as not required, which a requirement refuses
_required contains required.id if some required in input.required.boundaries

# METADATA
# description: Whether the sandbox of a profile was probed at all.
# custom:
#   proof: only probes of the profile's own backend count
probed(profile) if {
	some probe in input.probes
	probe.id == _backend(profile)
}

# METADATA
# description: Whether it was probed on this machine in its current state.
# custom:
#   proof: only probes of the profile's own backend count
probed_here(profile) if {
	some probe in input.probes
	probe.id == _backend(profile)
	_made_here(probe)
}

# METADATA
# description: Whether it was probed on this machine in its current state, and recently.
# custom:
#   proof: only probes of the profile's own backend count
probed_recently(profile) if {
	some probe in input.probes
	probe.id == _backend(profile)
	_made_here(probe)
	_recent(probe)
}

# The probe was made by this installation, on this machine in its current state.
_made_here(probe) if {
	is_string(probe.subject)
	probe.subject == probe.machine
	probe.authentic == true
}

# The probe is neither too old nor from the future. A small clock skew is tolerated.
_recent(probe) if {
	age := _age(probe)
	is_number(age)
	max_age := data.policy.sandbox.probe_max_age_seconds
	is_number(max_age)
	age <= max_age
	skew := data.policy.sandbox.probe_clock_skew_seconds
	is_number(skew)
	age + skew >= 0
}

_age(probe) := input.now - probe.probed_at if {
	is_number(probe.probed_at)
	is_number(input.now)
}

_backend(profile) := data.policy.sandbox.profiles[profile].backend
