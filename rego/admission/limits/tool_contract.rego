# What was accepted: a proposal, which registers nothing, or exactly one tool.
package admission.limits.tool_contract

import future.keywords.not

limits := {"registers": false} if {
	input.kind == "proposal"
	[proposal] = input.proposals
	is_string(proposal.content)
}

limits := {
	"registers": true,
	"name": tool.name,
	"definition": tool.definition.content,
	"implementation": tool.implementation.digest,
	"side_effects": tool.side_effects,
	"environment": tool.environment,
} if {
	input.kind == "tool"
	[tool] = input.tools
	is_string(tool.name)
	is_string(tool.definition.content)
	is_string(tool.implementation.digest)
	is_array(tool.side_effects)
	is_string(tool.environment)
}
