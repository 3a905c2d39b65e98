package admission.requirements.tool_call.tool

import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: The tool is one that the policy knows
# description: Tools are known by their exact name. One that only looks like another, by letter case or by letters of
#   another script, is another tool.
# custom:
#   code: tool_unknown
#   remedy: Call a tool that is listed in policy/tools.yaml, spelled as it is there, or ask for an entry for this one
# labels:
#   row: C67
tool_known if tools.known(input.call.tool)

# METADATA
# title: The tool is one that the profile of the agent has
# description: A profile only narrows what the policy grants. Without a profile, or with one that the policy does not
#   know, an agent has no tools.
# custom:
#   code: tool_not_in_profile
#   remedy: Name a profile that has the tool, or ask whoever decides on policy/tools.yaml to list it there
#   reads: ["tools.profiles.{asked.profile}"]
#   after: [tool_unknown]
# labels:
#   row: B16, B17
tool_in_profile if tools.in_profile(input.asked, input.call.tool)
