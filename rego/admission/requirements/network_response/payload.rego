package admission.requirements.network_response.payload

import future.keywords.not

# METADATA
# title: The payload is within the byte limit
# description: Neither the declared length nor the bytes received pass it; the transfer ends there.
# custom:
#   code: payload_too_large
#   after: [content_encoded, framing_ambiguous]
#   remedy: Fetch a smaller file, or have fetch.max_bytes in policy/networks.yaml raised (media also policy/media.yaml);
#     if the host sent more than the length that it declared, fetch from another one
#   reads: [networks.fetch.max_bytes]
# labels:
#   row: A36
small_enough if {
	input.transfer.within_cap == true
	is_number(input.body.bytes)
	input.body.bytes <= data.policy.networks.fetch.max_bytes
}

# METADATA
# title: The payload is complete
# description: The body ended where its length or its last chunk says.
# custom:
#   code: payload_incomplete
#   after: [payload_too_large]
#   remedy: Retry; the connection ended too early
# labels:
#   row: A36
complete if input.transfer.complete == true
