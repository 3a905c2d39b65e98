package admission.requirements.skill_file.file

import future.keywords.not

# METADATA
# title: The file exists and is readable
# description: The engine opens the file once and reads from that handle.
# custom:
#   code: file_missing
#   after: [symlink_escape]
#   remedy: Request a file that the skill contains
# labels:
#   row: B34
file_found if input.file.found == true

# METADATA
# title: The path names a regular file
# description: Folders have no content; a FIFO, socket or device could block.
# custom:
#   code: not_a_file
#   after: [file_missing]
#   remedy: Request a regular file
# labels:
#   row: B34
regular if input.file.kind == "file"

# METADATA
# title: The number of hard links is within the limit for skill files
# description: A second hard link may be outside the skill, so the file may not belong to the skill. The admitted
#   number is a value in policy/skills.yaml.
# custom:
#   code: hard_link_not_admitted
#   after: [not_a_file]
#   remedy: Replace the file with a separate copy
#   reads: [skills.max_names]
# labels:
#   row: B33
one_name if {
	is_number(input.file.names)
	input.file.names > 0
	input.file.names <= data.policy.skills.max_names
}

# METADATA
# title: The file is within the size limit for skill files
# description: Counted in bytes of the opened file; the adapter that reads it stops at the limit too.
# custom:
#   code: file_too_large
#   after: [not_a_file]
#   remedy: Split the file, or have max_bytes in policy/skills.yaml raised
#   reads: [skills.max_bytes]
# labels:
#   row: B35
small_enough if {
	is_number(input.file.bytes)
	input.file.bytes >= 0
	input.file.bytes <= data.policy.skills.max_bytes
}
