# Where files of a skill may be: in certain folders, up to a depth, and at the top where the policy lists it.
package admission.lib.skill

import future.keywords.not

# `place` has the number of parts of a path below the skill's folder and the name of the first one.
readable(place) if {
	_listed(place.folder)
	is_number(place.segments)
	place.segments > 1
	place.segments <= data.policy.skills.depth + 1
}

readable(place) if {
	place.segments == 1
	"." in data.policy.skills.folders
}

_listed(folder) if folder in data.policy.skills.folders

_listed(folder) if {
	"*" in data.policy.skills.folders
	regex.match(`^[^.].*$`, folder)
}
