package admission.requirements.tool_contract.tool

import future.keywords.not

# METADATA
# title: The tool is one we know
# description: Every tool has a row in policy/tools.yaml, under the name of its definition.
# custom:
#   code: tool_unknown
#   each: tools
#   empty: allowed
#   remedy: Give the tool a row in policy/tools.yaml, or register one that has a row
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A75
known(tool) if is_object(data.policy.tools.tools[tool.name])

# METADATA
# title: The implementation is code of this machine
# description: What is reached over a network is not an implementation but a service, and is admitted elsewhere.
# custom:
#   code: not_local
#   each: tools
#   empty: allowed
#   remedy: Register a function of this program
# labels:
#   row: A75
local(tool) if tool.implementation.local == true

# METADATA
# title: The implementation is one that somebody has looked at
# description: Digests of the source files of curated implementations are values in policy/tools.yaml.
# custom:
#   code: not_curated
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   remedy: Have the implementation reviewed, and its digest put under `curated` of its tool in policy/tools.yaml
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A75
curated(tool) if tool.implementation.digest in data.policy.tools.tools[tool.name].curated

# METADATA
# title: Every argument of the definition has a type
# description: The definition has a valid schema of an object, and policy/tools.yaml says of each of its arguments
#   how it is read.
# custom:
#   code: schema_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   remedy: Give the definition a valid JSON Schema of an object, with the arguments that policy/tools.yaml lists
#   reads: ["tools.tools.{name}"]
#   proof: the names are checked to be a list, and each of them must be a row; a definition without any has no arguments
# labels:
#   row: A76
schema_compatible(tool) if {
	is_array(tool.definition.arguments)
	every argument in tool.definition.arguments {
		is_string(data.policy.tools.tools[tool.name].arguments[argument])
	}
}

# METADATA
# title: The definition is the one that was pinned
# description: A definition may be pinned by its digest in policy/tools.yaml; any change needs a new admission.
# custom:
#   code: definition_changed
#   fixed: true
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   remedy: Look at what changed, then put the new digest under `definition` of the tool in policy/tools.yaml
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
# title: The effects that the tool states are those that it has here
# description: What a tool does to the world is a value in policy/tools.yaml; one that states more or less is another.
# custom:
#   code: side_effects_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_unknown]
#   remedy: State the side effects that policy/tools.yaml has for the tool
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A77
side_effects_compatible(tool) if {
	is_array(tool.side_effects)
	is_array(data.policy.tools.tools[tool.name].side_effects)
	sort(tool.side_effects) == sort(data.policy.tools.tools[tool.name].side_effects)
}

# METADATA
# title: The tool is made for the environment
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
