package admission.requirements.adapter.manifest

import future.keywords.not

# METADATA
# title: Adapters are enabled
# description: Only `--enable-mcp-adapter` or `enable_mcp_adapter=True` turns adapters on; the policy may forbid it.
# custom:
#   code: adapter_disabled
#   fixed: true
#   remedy: Pass --enable-mcp-adapter or enable_mcp_adapter=True, if the policy lets adapters be enabled
#   reads: [adapters.may_be_enabled]
# labels:
#   row: A43, A44, A45, A98
enabled if {
	input.enabled == true
	data.policy.adapters.may_be_enabled == true
}

# METADATA
# title: The manifest is of format 1
# description: What another format means is not known.
# custom:
#   code: manifest_format_unknown
#   remedy: "Write the manifest in format 1, with `format: 1`"
# labels:
#   row: A93
format_known if input.manifest.format == 1

# METADATA
# title: Every field of the manifest is known
# description: A field that is not read could be taken for a promise.
# custom:
#   code: manifest_field_unknown
#   each: manifest.unknown_fields
#   empty: required
#   proof: the list contains only unknown fields, so an empty list means that there are none
#   remedy: Remove the field from the manifest
# labels:
#   row: A93, A98
fields_known if input.manifest.unknown_fields == []

# METADATA
# title: The manifest is within the size limit
# description: The size is a value in policy/adapters.yaml.
# custom:
#   code: manifest_too_large
#   remedy: Split the adapter into several, each with its own manifest
#   reads: [adapters.limits]
# labels:
#   row: A93
small_enough if {
	is_number(input.manifest.bytes)
	is_number(data.policy.adapters.limits.manifest_bytes)
	input.manifest.bytes <= data.policy.adapters.limits.manifest_bytes
}

# METADATA
# title: The manifest states the id of the adapter
# description: Records and messages name the adapter by it.
# custom:
#   code: "manifest_incomplete:id"
#   remedy: State `id` in lower-case letters, digits and `_`, such as `my_contacts`
# labels:
#   row: A93
identified if is_string(input.manifest.id)

# METADATA
# title: The manifest states the environment identity
# description: The environment is the one that the source bundle was admitted for.
# custom:
#   code: "manifest_incomplete:environment_identity"
#   remedy: State `environment_identity`, the name of the environment, in lower-case letters, digits and `_`
# labels:
#   row: A53
environment_stated if is_string(input.manifest.environment_identity)

# METADATA
# title: The manifest states the source-policy hash
# description: It is the digest of the limits with which the source bundle of the environment was admitted.
# custom:
#   code: "manifest_incomplete:source_policy_hash"
#   remedy: "State `source_policy_hash`, as `sha256:` and 64 lower-case hex digits"
# labels:
#   row: A54
source_policy_stated if is_string(input.manifest.source_policy_hash)

# METADATA
# title: The source-policy hash is that of the admitted source bundle
# description: The engine computes it when it admits the source bundle of the environment.
# custom:
#   code: source_policy_mismatch
#   fixed: true
#   after: [adapter_disabled, "manifest_incomplete:environment_identity", "manifest_incomplete:source_policy_hash"]
#   facts: {stated: manifest.source_policy_hash, admitted: source.policy_hash}
#   remedy: Admit the source bundle of the environment, then write the admitted hash into the manifest; if the source
#     bundle or its policy has changed since an environment was built, build the environment again
# labels:
#   row: A54
source_policy_matches if {
	is_string(input.manifest.source_policy_hash)
	input.manifest.source_policy_hash == input.source.policy_hash
}

# METADATA
# title: The manifest lists the supported operations
# description: An adapter does nothing that its manifest does not list.
# custom:
#   code: "manifest_incomplete:supported_operations"
#   remedy: List the operations under `supported_operations`
# labels:
#   row: A55
operations_stated if {
	is_array(input.manifest.supported_operations)
	count(input.manifest.supported_operations) > 0
}

# METADATA
# title: The manifest has the schemas of its tools
# description: Arguments of a call must fit the schema of its tool.
# custom:
#   code: "manifest_incomplete:tool_schemas"
#   remedy: State under `tool_schemas` the JSON Schema of the arguments of each tool
# labels:
#   row: A56
schemas_stated if {
	is_array(input.manifest.tool_schemas)
	count(input.manifest.tool_schemas) > 0
}

# METADATA
# title: The manifest states the side-effect classes
# description: They are stated for each tool.
# custom:
#   code: "manifest_incomplete:side_effect_classes"
#   remedy: State under `side_effect_classes` what each tool may change or reach
# labels:
#   row: A57
effects_stated if {
	is_array(input.manifest.side_effect_classes)
	count(input.manifest.side_effect_classes) > 0
}

# METADATA
# title: The manifest states the verifier implications
# description: They are stated for each tool.
# custom:
#   code: "manifest_incomplete:verifier_implications"
#   remedy: State under `verifier_implications` what a call of each tool means for a verifier
# labels:
#   row: A58
implications_stated if {
	is_array(input.manifest.verifier_implications)
	count(input.manifest.verifier_implications) > 0
}
