# Whether a tool comes with the definition that policy/tools.yaml requires.
package admission.lib.tool_definition

import future.keywords.not

# No definition is required; one that is stated is ignored.
not_required(tool) if data.policy.tools.tools[tool].definition == "none"

# There is a definition, and it is the pinned one if policy/tools.yaml pins one.
as_pinned(tool, digest) if {
	is_string(digest)
	data.policy.tools.tools[tool].definition in {"any", digest}
	startswith(digest, "sha256:")
}

# A definition that informs and does not steer: without hidden characters and instructions to a model.
informs(definition) if {
	definition.hidden == 0
	definition.instructions == 0
	is_object(data.policy.results.markers)
}
