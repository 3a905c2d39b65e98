# What the engine has seen of a generated artifact.
package admission.lib.artifact

import future.keywords.not

# METADATA
# description: The newest check of this name, where it was passed under a decision that is known.
# custom:
#   proof: the engine gives one check of each name, the newest
passed(name) := check if {
	some check in input.checks
	check.id == name
	check.passed == true
	is_string(check.decision_id)
}

# METADATA
# description: Where code of this kind has to have run before it may be used.
isolations(kind) := {"restricted_process", "container"} if kind in {"solution", "verifier"}

isolations(kind) := {"restricted_process", "container", "webassembly"} if {
	kind in {"code", "tool", "environment_logic"}
}
