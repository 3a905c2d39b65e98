# Whether a tool comes with the definition that policy/tools.yaml asks for.
package admission.lib.tool_definition

import future.keywords.not

# No definition is asked for, and none is looked at.
unasked(tool) if data.policy.tools.tools[tool].definition == "none"

# It came with a definition, and with this one where one is pinned.
as_pinned(tool, digest) if {
	is_string(digest)
	data.policy.tools.tools[tool].definition in {"any", digest}
	startswith(digest, "sha256:")
}
