package admission.requirements.tool_visibility.tool

import data.admission.lib.tool_visibility
import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: The tool is one that the policy knows
# description: Tools are known by their exact name. One whose definition cannot be read has none.
# custom:
#   code: tool_unknown
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: List a tool of policy/tools.yaml, spelled as it is there, or ask for an entry for this one
# labels:
#   row: B06
tool_known(tool) if tools.known(tool.name)

# METADATA
# title: The policy shows tools
# description: Under deny_all, which is in force where no policy is named, a prompt holds no tool, whatever the profile.
# custom:
#   code: tool_hidden
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: Name a policy of policy/tools.yaml whose base shows tools, if this agent is meant to have any
#   reads: ["tools.policies.{asked.policy}"]
#   after: [tool_unknown, tool_policy_unknown, tool_policy_principal]
# labels:
#   row: B01, B03, B13, B15
tool_shown(tool) if tools.shown(input.asked, tool.name)

# METADATA
# title: The tool is one that the profile of the agent has
# description: A profile only narrows what the policy shows. Without a profile, or with one that the policy does not
#   know, no tool is shown.
# custom:
#   code: tool_not_in_profile
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: Name a profile that has the tool, or ask whoever decides on policy/tools.yaml to list it there
#   reads: ["tools.profiles.{asked.profile}"]
#   after: [tool_unknown]
# labels:
#   row: B06, B12, B17
tool_in_profile(tool) if tools.in_profile(input.asked, tool.name)

# METADATA
# title: The tool comes with the definition that was pinned for it
# description: A server that changes the definition of a tool has another tool, which has to be looked at again.
# custom:
#   code: definition_changed
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: List the tool with its definition; when that changed, let somebody look at it and pin its digest
#   reads: ["tools.tools.{name}.definition"]
#   after: [tool_unknown]
as_pinned(tool) if tool_visibility.defined(tool)

# METADATA
# title: The tool is listed once
# description: Of two tools with one name nobody knows which would be called.
# custom:
#   code: tool_listed_twice
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: Leave out one of the two, or let it have a name of its own
#   after: [tool_unknown]
listed_once(tool) if tool_visibility.listed_once(tool)
