package admission.requirements.skill_file.path

import data.admission.lib.skill
import future.keywords.not

# METADATA
# title: The path is that of a file directly in a folder that skills may be read from
# description: A path with one reading, relative to the skill. The folders and the depth are values in
#   policy/skills.yaml.
# custom:
#   code: path_not_allowed
#   remedy: Ask for a file by its folder and its name, such as scripts/run.sh
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
# description: Links are resolved one by one by the engine, and none is followed to the outside.
# custom:
#   code: symlink_escape
#   fixed: true
#   after: [path_not_allowed]
#   remedy: Replace the link by the file itself
# labels:
#   row: B33
link_inside if input.file.link in {"none", "inside"}

# METADATA
# title: A link leads to a file that could be asked for by its own path
# description: Else a link would open a folder of the skill that may not be read from.
# custom:
#   code: link_target_not_allowed
#   after: [path_not_allowed, symlink_escape, file_missing]
#   remedy: Move the file itself to where the link is
#   reads: [skills.folders, skills.depth]
# labels:
#   row: B33, B34
target_allowed if skill.readable(input.file.real)
