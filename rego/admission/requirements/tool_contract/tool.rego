package admission.requirements.tool_contract.tool

import future.keywords.not

# METADATA
# title: The tool is known
# description: Every tool has an entry in policy/tools.yaml, under the name of its definition.
# custom:
#   code: tool_unknown
#   each: tools
#   empty: allowed
#   remedy: Add the tool to policy/tools.yaml, or register a tool that is listed there
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A75
known(tool) if is_object(data.policy.tools.tools[tool.name])

# METADATA
# title: The implementation is local code
# description: A network service is not an implementation; MCP servers are decided at point mcp.
# custom:
#   code: not_local
#   each: tools
#   empty: allowed
#   remedy: Register a function of this program
# labels:
#   row: A75
local(tool) if tool.implementation.local == true

# METADATA
# title: The implementation has been reviewed
# description: Digests of the source files of reviewed implementations are values in policy/tools.yaml.
# custom:
#   code: not_curated
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   facts: {digest: implementation.digest}
#   remedy: Have the implementation reviewed and its digest added to `curated` of the tool in policy/tools.yaml
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A75
curated(tool) if tool.implementation.digest in data.policy.tools.tools[tool.name].curated

# METADATA
# title: Every argument of the definition has a type
# description: The definition has a valid schema of an object, and policy/tools.yaml has a type for each of its
#   arguments.
# custom:
#   code: schema_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   remedy: Give the definition a valid JSON Schema of an object, with the arguments that policy/tools.yaml lists
#   reads: ["tools.tools.{name}"]
#   proof: the names are checked to be a list, and each must be a row; a definition without names has no arguments
# labels:
#   row: A76
schema_compatible(tool) if {
	is_array(tool.definition.arguments)
	every argument in tool.definition.arguments {
		is_string(data.policy.tools.tools[tool.name].arguments[argument])
	}
}

# METADATA
# title: The definition is the pinned one
# description: A definition may be pinned by its digest in policy/tools.yaml; any change needs a new admission.
# custom:
#   code: definition_changed
#   fixed: true
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   facts: {digest: definition.digest}
#   remedy: Review the change, then write the new digest to `definition` of the tool in policy/tools.yaml
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A76, H14
definition_pinned(tool) if {
	is_string(tool.definition.digest)
	data.policy.tools.tools[tool.name].definition in {"any", "none"}
}

definition_pinned(tool) if {
	is_string(tool.definition.digest)
	tool.definition.digest == data.policy.tools.tools[tool.name].definition
}

# METADATA
# title: The stated side effects match those in policy/tools.yaml
# description: Side effects are values in policy/tools.yaml; the tool must state exactly these.
# custom:
#   code: side_effects_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   remedy: State the side effects that policy/tools.yaml lists for the tool
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A77
side_effects_compatible(tool) if {
	is_array(tool.side_effects)
	is_array(data.policy.tools.tools[tool.name].side_effects)
	sort(tool.side_effects) == sort(data.policy.tools.tools[tool.name].side_effects)
}

# METADATA
# title: The tool is admitted in the environment
# description: Environments of a tool are values in policy/tools.yaml.
# custom:
#   code: environment_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   remedy: Register the tool in an environment that policy/tools.yaml lists for it
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A78
environment_compatible(tool) if tool.environment in data.policy.tools.tools[tool.name].environments
