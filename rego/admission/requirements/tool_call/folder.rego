package admission.requirements.tool_call.folder

import future.keywords.not

# METADATA
# title: The working folder of the call is a folder and not the whole machine
# description: Rules speak of the working folder as of a small place; with `/` for it they would admit every file.
# custom:
#   code: working_folder_too_wide
#   remedy: State the folder that the agent works in, such as /work
#   proof: without a working folder no path is in it, and rules that refuse take every path for one that may be
narrow if not input.asked.cwd

narrow if {
	startswith(input.asked.cwd, "/")
	input.asked.cwd != "/"
}
