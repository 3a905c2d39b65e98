# The admitted manifest: what its adapter may do, on which tools.
package admission.limits.adapter

import future.keywords.not

# METADATA
# custom:
#   proof: the names are counted, so one that is missing leaves the rule undefined
limits := {
	"manifest": input.manifest.digest,
	"adapter": input.manifest.id,
	"environment": input.manifest.environment_identity,
	"source_policy_hash": input.source.policy_hash,
	"execution": input.manifest.execution,
	"operations": operations,
	"tools": tools,
} if {
	is_string(input.manifest.digest)
	is_string(input.manifest.id)
	is_string(input.manifest.environment_identity)
	is_string(input.source.policy_hash)
	is_string(input.manifest.execution)
	is_array(input.manifest.supported_operations)
	is_array(input.tools)
	operations := [operation.name | some operation in input.manifest.supported_operations; is_string(operation.name)]
	tools := [tool.name | some tool in input.tools; is_string(tool.name)]
	count(operations) == count(input.manifest.supported_operations)
	count(tools) == count(input.tools)
}
