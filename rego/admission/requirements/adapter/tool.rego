package admission.requirements.adapter.tool

import future.keywords.not

# METADATA
# title: Every tool has a schema, side-effect classes and a verifier implication
# description: A tool that one of the three fields leaves out is not described.
# custom:
#   code: tool_incomplete
#   each: tools
#   empty: allowed
#   remedy: State for the tool a valid JSON Schema of an object, a list of side effects and one verifier implication, or
#     remove it from all three fields
# labels:
#   row: A56, A57, A58
complete(tool) if {
	is_string(tool.schema_digest)
	is_array(tool.side_effects)
	is_string(tool.verifier_implication)
}

# METADATA
# title: The tool is known
# description: Every tool has an entry in policy/tools.yaml.
# custom:
#   code: tool_unknown
#   each: tools
#   empty: allowed
#   remedy: Add the tool to policy/tools.yaml, or remove it from the manifest
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A46
known(tool) if is_object(data.policy.tools.tools[tool.name])

# METADATA
# title: The tool is in the curated registry
# description: A tool enters the registry by a permit of point tool_contract.
# custom:
#   code: tool_not_curated
#   fixed: true
#   each: tools
#   empty: allowed
#   after: [adapter_disabled, tool_unknown, "manifest_incomplete:environment_identity"]
#   remedy: Register the tool by a decision of point tool_contract, or remove it from the manifest
# labels:
#   row: A46, A52
curated(tool) if tool.registered.curated == true

# METADATA
# title: The schema is that of the registered tool
# description: Another schema describes another tool.
# custom:
#   code: schema_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_not_curated, tool_incomplete]
#   remedy: Copy the schema of the tool's definition into the manifest
# labels:
#   row: A56
schema_compatible(tool) if {
	is_string(tool.schema_digest)
	tool.schema_digest == tool.registered.schema_digest
}

# METADATA
# title: The tool is admitted in the environment
# description: Environments of a tool are values in policy/tools.yaml.
# custom:
#   code: environment_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_unknown, "manifest_incomplete:environment_identity"]
#   remedy: Use the tool in an environment that policy/tools.yaml lists for it
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A53
environment_compatible(tool) if input.manifest.environment_identity in data.policy.tools.tools[tool.name].environments

# METADATA
# title: The side-effect classes match those in policy/tools.yaml
# description: The manifest must state exactly these for the tool.
# custom:
#   code: side_effects_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_unknown, tool_incomplete]
#   remedy: State the side effects that policy/tools.yaml lists for the tool
#   reads: ["tools.tools.{name}"]
# labels:
#   row: A57
side_effects_compatible(tool) if {
	is_array(tool.side_effects)
	is_array(data.policy.tools.tools[tool.name].side_effects)
	sort(tool.side_effects) == sort(data.policy.tools.tools[tool.name].side_effects)
}

# METADATA
# title: The side-effect classes are admitted for adapters
# description: Classes are values in policy/adapters.yaml.
# custom:
#   code: side_effect_not_admitted
#   each: tools
#   empty: allowed
#   after: [tool_incomplete]
#   remedy: Remove the tool from the manifest, or ask for its side effects in policy/adapters.yaml
#   reads: [adapters.side_effect_classes]
#   proof: the classes are checked to be a list, and each must be in the list of the policy
# labels:
#   row: A57
side_effects_admitted(tool) if {
	is_array(tool.side_effects)
	every class in tool.side_effects { class in data.policy.adapters.side_effect_classes }
}

# METADATA
# title: The verifier implication fits the side effects
# description: Implications, and the side effects that each fits, are values in policy/adapters.yaml.
# custom:
#   code: verifier_implication_incompatible
#   each: tools
#   empty: allowed
#   after: [tool_incomplete]
#   remedy: State an implication that policy/adapters.yaml lists for all side effects of the tool
#   reads: ["adapters.verifier_implications.{verifier_implication}"]
#   proof: the classes are checked to be a list, and each must be in the list of the policy
# labels:
#   row: A58
implication_compatible(tool) if {
	is_array(tool.side_effects)
	is_string(tool.verifier_implication)
	every class in tool.side_effects {
		class in data.policy.adapters.verifier_implications[tool.verifier_implication]
	}
}
