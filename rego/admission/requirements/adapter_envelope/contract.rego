package admission.requirements.adapter_envelope.contract

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
#   row: A43, A98
enabled if {
	input.enabled == true
	data.policy.adapters.may_be_enabled == true
}

# METADATA
# title: The envelope keeps every term of the manifest's contract
# description: A term is a field with an admitted value, the right shape, or the size as JSON.
# custom:
#   code: adapter_contract_rejected
#   fixed: true
#   each: terms
#   after: [adapter_disabled]
#   remedy: Send an envelope of format 1 that fits the admitted manifest, and in a result also the request it answers
#   reads: [adapters.limits]
# labels:
#   row: A59, A60, A61
kept(term) if {
	is_string(term.stated)
	term.stated in term.admitted
}

kept(term) if {
	term.id == "size"
	is_number(term.bytes)
	is_number(data.policy.adapters.limits.envelope_bytes)
	term.bytes <= data.policy.adapters.limits.envelope_bytes
}
