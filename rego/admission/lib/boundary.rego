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

# Seconds by which the clock of a probe may be ahead: a clock that was set back is no forgery.
_ahead := 60

# METADATA
# description: Whether the sandbox of a profile holds a boundary, in a way that profile and floor admit.
proven(profile, name) if {
	backend := data.policy.sandbox.profiles[profile].backend
	some held in input.boundaries
	held.backend == backend
	held.boundary == name
	held.enforced == true
	is_string(held.evidence)
	held.kind in {"kernel", "supervised", "bounded"}
	held.kind in data.policy.sandbox.floor.boundaries[name]
	held.kind in data.policy.sandbox.profiles[profile].boundaries[name]
	tried_recently(profile)
}

# METADATA
# description: Whether the engine asks for every boundary there is.
all_needed if {
	count(names) > 0
	every name in names {
		some needed in input.required.boundaries
		needed.id == name
	}
}

# METADATA
# description: Whether the sandbox of a profile was tried at all.
tried(profile) if {
	some probe in input.probes
	probe.id == data.policy.sandbox.profiles[profile].backend
}

# METADATA
# description: Whether it was tried on this machine as it is now.
tried_here(profile) if {
	some probe in input.probes
	probe.id == data.policy.sandbox.profiles[profile].backend
	_made_here(probe)
}

# METADATA
# description: Whether it was tried on this machine as it is now, and not long ago.
tried_recently(profile) if {
	some probe in input.probes
	probe.id == data.policy.sandbox.profiles[profile].backend
	_made_here(probe)
	_recent(probe)
}

# The probe was made by this installation, on this machine as it is now.
_made_here(probe) if {
	is_string(probe.subject)
	probe.subject == probe.machine
	probe.authentic == true
}

# The probe is neither old nor from the future.
_recent(probe) if {
	is_number(probe.probed_at)
	is_number(input.now)
	is_number(data.policy.sandbox.probe_max_age_seconds)
	probe.probed_at <= input.now + _ahead
	input.now - probe.probed_at <= data.policy.sandbox.probe_max_age_seconds
}
