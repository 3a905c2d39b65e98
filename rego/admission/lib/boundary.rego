# When a sandbox counts as holding a boundary: it was tried on this machine as it is now, and held.
package admission.lib.boundary

import future.keywords.not

# Every boundary there is. All have to be held, whatever a request or a value names.
names := {
	"files", "network", "processes", "environment", "descriptors", "capabilities", "namespaces", "syscalls",
	"memory", "memory_process", "process_count", "open_files", "file_size", "disk", "inodes", "cpu", "output",
	"time", "survivors",
}

# What a caller's own words for boundaries stand for.
behind := {
	"network": {"network"},
	"filesystem": {"files", "file_size", "disk", "inodes"},
	"cpu": {"cpu"},
	"memory": {"memory", "memory_process"},
	"processes": {"processes", "process_count", "survivors"},
}

# METADATA
# description: Whether the sandbox of a profile holds a boundary, in a way that profile and floor admit.
proven(profile, name) if {
	tried_recently(profile)
	some kind in data.policy.sandbox.profiles[profile].boundaries[name]
	kind in {"kernel", "supervised", "bounded"}
	[_backend(profile), name, kind] in _shown
	kind in data.policy.sandbox.floor.boundaries[name]
}

# METADATA
# description: Which backend was shown to hold which boundary, and by whom.
# custom:
#   proof: what is missing here was shown by nobody, and each boundary is asked for by its name
_shown contains [held.backend, held.boundary, held.kind] if {
	some held in input.boundaries
	held.enforced == true
	is_string(held.evidence)
}

# METADATA
# description: Whether the engine asks for every boundary there is.
all_needed if {
	count(names) > 0
	every name in names { name in _needed }
}

# METADATA
# custom:
#   proof: a boundary that is missing here is not asked for
_needed contains needed.id if some needed in input.required.boundaries

# METADATA
# description: Whether the sandbox of a profile was tried at all.
# custom:
#   proof: one probe of the profile's own backend is asked for; those of other backends say nothing of it
tried(profile) if {
	some probe in input.probes
	probe.id == _backend(profile)
}

# METADATA
# description: Whether it was tried on this machine as it is now.
# custom:
#   proof: one probe of the profile's own backend is asked for; those of other backends say nothing of it
tried_here(profile) if {
	some probe in input.probes
	probe.id == _backend(profile)
	_made_here(probe)
}

# METADATA
# description: Whether it was tried on this machine as it is now, and not long ago.
# custom:
#   proof: one probe of the profile's own backend is asked for; those of other backends say nothing of it
tried_recently(profile) if {
	some probe in input.probes
	probe.id == _backend(profile)
	_made_here(probe)
	_recent(probe)
}

# The probe was made by this installation, on this machine as it is now.
_made_here(probe) if {
	is_string(probe.subject)
	probe.subject == probe.machine
	probe.authentic == true
}

# The probe is neither old nor from the future, the clock aside: one that was set back by a minute is no forgery.
_recent(probe) if {
	age := _age(probe)
	is_number(age)
	most := data.policy.sandbox.probe_max_age_seconds
	is_number(most)
	age >= -60
	age <= most
}

_age(probe) := input.now - probe.probed_at if {
	is_number(probe.probed_at)
	is_number(input.now)
}

_backend(profile) := data.policy.sandbox.profiles[profile].backend
