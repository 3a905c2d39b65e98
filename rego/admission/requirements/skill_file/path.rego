package admission.requirements.skill_file.path

import data.admission.lib.skill
import future.keywords.not

# METADATA
# title: The path names a file in an admitted folder of the skill
# description: A canonical path relative to the skill. Folders and depth are values in policy/skills.yaml.
# custom:
#   code: path_not_allowed
#   remedy: Request a file by folder and name, such as scripts/run.sh; for other places of a skill that you trust, have
#     the folder (`"."` for its top, `"*"` for any) added to folders in policy/skills.yaml, or depth raised
#   reads: [skills.folders, skills.depth]
# labels:
#   row: B34
path_allowed if {
	input.path.canonical == true
	input.path.absolute == false
	input.path.dotdot == false
	skill.readable(input.path)
}

# METADATA
# title: No link on the path leaves the folder of the skill
# description: The engine resolves links one by one and follows none to the outside.
# custom:
#   code: symlink_escape
#   fixed: true
#   after: [path_not_allowed]
#   remedy: Replace the link with the file itself
# labels:
#   row: B33
link_inside if input.file.link in {"none", "inside"}

# METADATA
# title: A link leads to a file that is itself admitted
# description: Otherwise a link could give access to a folder of the skill that is not admitted.
# custom:
#   code: link_target_not_allowed
#   after: [file_missing]
#   remedy: Replace the link with the file itself
#   reads: [skills.folders, skills.depth]
# labels:
#   row: B33, B34
target_allowed if skill.readable(input.file.real)
