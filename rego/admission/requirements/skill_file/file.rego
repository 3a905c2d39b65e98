package admission.requirements.skill_file.file

import future.keywords.not

# METADATA
# title: The file is there, and the engine may read it
# description: The engine opens it once; what was opened is what is read.
# custom:
#   code: file_missing
#   after: [path_not_allowed, symlink_escape]
#   remedy: Ask for a file that the skill has
# labels:
#   row: B34
file_found if input.file.found == true

# METADATA
# title: What is at the path is a regular file
# description: A folder has no content; a FIFO, socket or device could block, or be something else than a file.
# custom:
#   code: not_a_file
#   after: [path_not_allowed, symlink_escape, file_missing]
#   remedy: Ask for a regular file
# labels:
#   row: B34
regular if input.file.kind == "file"

# METADATA
# title: The file has no more names than a file of a skill may have
# description: A second name (hard link) may stand outside of the skill, and nobody can tell where, so such a file
#   may be one that was never part of the skill. How many names are admitted is a value in policy/skills.yaml.
# custom:
#   code: hard_link_not_admitted
#   after: [path_not_allowed, symlink_escape, file_missing, not_a_file]
#   remedy: Replace the file by a copy of its own
#   reads: [skills.max_names]
# labels:
#   row: B33
one_name if {
	is_number(input.file.names)
	input.file.names > 0
	input.file.names <= data.policy.skills.max_names
}

# METADATA
# title: The file is not larger than may be read of a skill
# description: The size in bytes of the file that was opened; the hand that reads it stops there too.
# custom:
#   code: file_too_large
#   after: [path_not_allowed, symlink_escape, file_missing, not_a_file]
#   remedy: Split the file, or have max_bytes in policy/skills.yaml raised
#   reads: [skills.max_bytes]
# labels:
#   row: B35
small_enough if {
	is_number(input.file.bytes)
	input.file.bytes >= 0
	input.file.bytes <= data.policy.skills.max_bytes
}
