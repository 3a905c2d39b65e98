package admission.requirements.tool_call.tool

import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: The tool is known
# description: Tools are matched by exact name. A look-alike name, in letter case or in another script, is another
#   tool.
# custom:
#   code: tool_unknown
#   remedy: Call a tool that is listed in policy/tools.yaml, spelled as it is there, or ask for an entry for this one
#   reads: ["tools.tools.{call.tool}"]
# labels:
#   row: C67
tool_known if tools.known(input.call.tool)

# METADATA
# title: The agent's profile includes the tool
# description: A profile only narrows what the policy grants. Without a known profile, an agent has no tools.
# custom:
#   code: tool_not_in_profile
#   remedy: Name a profile that includes the tool, or ask the owner of policy/tools.yaml to add it
#   reads: ["tools.profiles.{context.profile}"]
#   after: [tool_unknown]
# labels:
#   row: B16, B17
tool_in_profile if tools.in_profile(input.context, input.call.tool)
