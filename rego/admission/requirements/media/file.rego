package admission.requirements.media.file

import data.admission.lib.media
import future.keywords.not

# METADATA
# title: The file is below the folder that the engine serves
# description: Its path is relative to that folder, and no link on it leads out. In process without a root, the program
#   itself answers for the paths that it names.
# custom:
#   code: media_outside_root
#   remedy: Name a file by its path relative to the folder of `--root`, or bring its content as base64
# labels:
#   row: B40
inside if input.media.source in {"base64", "url"}

inside if {
	media.by_file
	input.media.inside == true
}

# METADATA
# title: The file has no more names than a file of media may have
# description: A second name (hard link) may stand outside of the folder, and nobody can tell where. How many names are
#   admitted is a value in policy/media.yaml.
# custom:
#   code: media_hard_link
#   after: [media_outside_root, media_unreadable]
#   remedy: Replace the file by a copy of its own
#   reads: [media.max_names]
# labels:
#   row: B40
one_name if input.media.source in {"base64", "url"}

one_name if {
	media.by_file
	is_number(input.media.names)
	input.media.names > 0
	input.media.names <= data.policy.media.max_names
}
