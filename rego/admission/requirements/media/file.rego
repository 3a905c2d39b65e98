package admission.requirements.media.file

import data.admission.lib.media
import future.keywords.not

# METADATA
# title: The file is inside the folder that the engine serves
# description: The path is relative to that folder, and no link leads out of it. In process without a root, the
#   program is responsible for its paths.
# custom:
#   code: media_outside_root
#   remedy: Name a file by its path relative to the `--root` folder, or send its content as base64
# labels:
#   row: B40
inside if input.media.source in {"base64", "url"}

inside if {
	media.by_file
	input.media.inside == true
}

# METADATA
# title: The number of hard links is within the limit for media
# description: A second hard link may be outside the folder. The admitted number is a value in policy/media.yaml.
# custom:
#   code: media_hard_link
#   after: [media_unreadable]
#   remedy: Replace the file with a separate copy
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
