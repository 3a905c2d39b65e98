package admission.requirements.mcp.definition

import data.admission.lib.mcp
import data.admission.lib.tool_definition
import future.keywords.not

# METADATA
# title: The tool is known
# description: Every tool has an entry in policy/tools.yaml, under its local name.
# custom:
#   code: tool_unknown
#   each: tools
#   empty: allowed
#   remedy: Add the tool to policy/tools.yaml under its local name, or have it removed from the list
#   reads: ["tools.tools.{id}"]
# labels:
#   row: H14
#   threat: injection
known(tool) if is_object(data.policy.tools.tools[tool.id])

# METADATA
# title: The definition of the tool was admitted
# description: Digests of admitted definitions are values in policy/mcp.yaml.
# custom:
#   code: definition_unknown
#   each: tools
#   empty: allowed
#   after: [server_not_admitted]
#   remedy: Review the definition, then add its digest to policy/mcp.yaml; `engine tools audit` prints it
#   reads: ["mcp.servers.{server}"]
# labels:
#   row: H14
#   threat: injection
pinned(tool) if is_string(mcp.pinned(tool).definition)

# METADATA
# title: The definition of the tool is the one that was admitted
# description: A definition is pinned by its digest; any change needs a new review.
# custom:
#   code: definition_changed
#   fixed: true
#   each: tools
#   empty: allowed
#   after: [definition_unknown]
#   remedy: Review the change, then write the new digest to policy/mcp.yaml; `engine tools audit` prints it
#   reads: ["mcp.servers.{server}"]
# labels:
#   row: H14
#   threat: injection
unchanged(tool) if {
	is_string(tool.definition)
	tool.definition == mcp.pinned(tool).definition
}

# METADATA
# title: The definition of the tool has no hidden characters and no instructions to the model
# description: A model reads every definition in its prompt. Markers are values in policy/results.yaml.
# custom:
#   code: definition_steers
#   each: tools
#   empty: allowed
#   remedy: Leave the tool out, or have its server changed; an exception in policy/levels.yaml has an owner and an end
#   reads: [results.markers]
# labels:
#   row: H14
#   threat: injection
informs(tool) if tool_definition.informs(tool)

# METADATA
# title: The server's own risk hints do not exceed our classification of the tool
# description: Side effects are values in policy/tools.yaml and override milder hints. A server that states some
#   hints means MCP's own defaults, the worst case, for the others; one that states none claims nothing.
# custom:
#   code: hint_more_dangerous
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   remedy: Review the tool, then list these side effects in policy/tools.yaml, or leave the tool out
#   reads: ["tools.tools.{id}"]
# labels:
#   row: H14
#   threat: injection
hints_within(tool) if {
	tool.hints.stated == false
	is_array(_effects(tool))
}

hints_within(tool) if {
	_changes_within(tool)
	_destruction_within(tool)
	_world_within(tool)
}

_effects(tool) := data.policy.tools.tools[tool.id].side_effects

_known_hints(tool) if {
	is_boolean(tool.hints.read_only)
	is_array(_effects(tool))
}

_changes_within(tool) if {
	_known_hints(tool)
	tool.hints.read_only == true
}

_changes_within(tool) if {
	_known_hints(tool)
	some effect in _effects(tool)
	effect in {"write", "execute", "destructive"}
}

_destruction_within(tool) if tool.hints.read_only == true

_destruction_within(tool) if tool.hints.destructive == false

_destruction_within(tool) if {
	is_boolean(tool.hints.destructive)
	"destructive" in _effects(tool)
}

_world_within(tool) if tool.hints.open_world == false

_world_within(tool) if {
	is_boolean(tool.hints.open_world)
	"network" in _effects(tool)
}
