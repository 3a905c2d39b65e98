package admission.requirements.tool_call.agent

import future.keywords.not

# METADATA
# title: An agent that calls a tool is active
# description: A caller whose name is the id of a provisioned agent is this agent. One that was ended has no tools.
# custom:
#   code: agent_inactive
#   fixed: true
#   each: agents
#   empty: allowed
#   remedy: Provision another agent; `engine agent list` prints those that are active
# labels:
#   row: E13
#   threat: ACE
agent_active(agent) if agent.active == true

# METADATA
# title: An agent calls only tools that it was approved with
# description: A person approved exactly the tools of its specification. Policies and profiles only narrow them.
# custom:
#   code: agent_tool_not_approved
#   fixed: true
#   each: agents
#   empty: allowed
#   remedy: Provision an agent with the tool; `engine agent list --format json` prints the tools of each
#   after: [agent_inactive]
# labels:
#   row: E13, E34
#   threat: ACE
tool_approved(agent) if {
	is_array(agent.tools)
	is_string(input.call.tool)
	input.call.tool in agent.tools
}
