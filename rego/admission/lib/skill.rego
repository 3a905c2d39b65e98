# Where the files of a skill may be: in certain folders of it, and how deep.
package admission.lib.skill

import future.keywords.not

# `place` counts the parts of a path below the skill's folder and names the first of them.
readable(place) if {
	place.folder in data.policy.skills.folders
	is_number(place.segments)
	place.segments > 1
	place.segments <= data.policy.skills.depth + 1
}
