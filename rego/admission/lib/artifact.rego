# What the engine has recorded of a generated artifact.
package admission.lib.artifact

import future.keywords.not

# METADATA
# description: The newest check of this name, if it passed under a recorded decision.
# custom:
#   proof: the engine lists only the newest check of each name
passed(name) := check if {
	some check in input.checks
	check.id == name
	check.passed == true
	is_string(check.decision_id)
}
