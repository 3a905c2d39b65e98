package admission.requirements.tool_visibility.tool

import data.admission.lib.tool_definition
import data.admission.lib.tool_visibility
import data.admission.lib.tools
import future.keywords.not

# METADATA
# title: The tool is known
# description: Tools are matched by exact name. A tool with an unreadable definition has no name.
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
# title: The tool policy shows tools
# description: Under deny_all, the default without a policy, a prompt contains no tools, whatever the profile.
# custom:
#   code: tool_hidden
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: Name a policy of policy/tools.yaml whose base shows tools
#   reads: ["tools.policies.{context.policy}"]
#   after: [tool_unknown, tool_policy_principal]
# labels:
#   row: B01, B03, B13, B15
tool_shown(tool) if tools.visible(input.context, tool.name)

# METADATA
# title: The agent's profile includes the tool
# description: A profile only narrows what the policy shows. Without a known profile, no tool is shown.
# custom:
#   code: tool_not_in_profile
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: Name a profile that includes the tool, or ask the owner of policy/tools.yaml to add it
#   reads: ["tools.profiles.{context.profile}"]
#   after: [tool_unknown]
# labels:
#   row: B06, B12, B17
tool_in_profile(tool) if tools.in_profile(input.context, tool.name)

# METADATA
# title: The definition of the tool is the pinned one
# description: A changed definition is a different tool, which must be reviewed again.
# custom:
#   code: definition_changed
#   waivable: false
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: List the tool with its definition; if it changed, have it reviewed and its digest written to `definition` of
#     the tool in policy/tools.yaml
#   reads: ["tools.tools.{name}.definition"]
#   after: [tool_unknown]
# labels:
#   row: H14
as_pinned(tool) if tool_visibility.defined(tool)

# METADATA
# title: The definition of the tool has no hidden characters and no instructions to the model
# description: A model reads every definition in its prompt. Markers are values in policy/results.yaml.
# custom:
#   code: definition_steers
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: Leave the tool out, or describe what it does without addressing the model
#   reads: [results.markers]
#   after: [tool_unknown]
# labels:
#   row: H14
#   threat: injection
informing(tool) if tool_definition.informs(tool)

# METADATA
# title: The tool is listed once
# description: With two tools of the same name, it is unclear which would be called.
# custom:
#   code: tool_listed_twice
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: Remove one of the two, or rename it
#   after: [tool_unknown]
# labels:
#   row: H14
listed_once(tool) if tool_visibility.listed_once(tool)

# METADATA
# title: The tool is not stopped
# description: A call of a stopped tool is refused, so no prompt offers it.
# custom:
#   code: tool_stopped
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: See who stopped it, and why, with `engine stop list`; `engine stop lift` lifts the stop
#   after: [tool_unknown]
# labels:
#   row: C68
not_stopped(tool) if tool_visibility.not_stopped(tool)

# METADATA
# title: The agent was approved with the tool
# description: A caller whose name is the id of a provisioned agent sees the tools that a person approved for it, while
#   it is active.
# custom:
#   code: agent_tool_not_approved
#   standing: warn
#   each: tools
#   empty: allowed
#   remedy: Provision an agent with the tool; `engine agent list --format json` prints the tools of each
#   after: [tool_unknown]
# labels:
#   row: E13
approved(tool) if tool_visibility.approved(tool)
