package admission.requirements.network_response.transfer

import future.keywords.not

# METADATA
# title: The transfer ended before its deadline
# description: One deadline from the connection to the last byte, in policy/networks.yaml.
# custom:
#   code: fetch_deadline_exceeded
#   remedy: Retry when the host answers faster, or have fetch.seconds in policy/networks.yaml raised
#   reads: [networks.fetch.seconds]
# labels:
#   row: H06
in_time if input.transfer.in_time == true

# METADATA
# title: A connection to an admitted address was made
# description: Only addresses of the decision on the request are connected to.
# custom:
#   code: connection_failed
#   after: [fetch_deadline_exceeded]
#   remedy: Retry when the host accepts connections
# labels:
#   row: H06
connected if input.transfer.connected == true

# METADATA
# title: The host proved its name by TLS
# description: The certificate must be valid now, for this name, and from a known authority.
# custom:
#   code: tls_failed
#   after: [connection_failed]
#   remedy: Have the host present a valid certificate for its name, or name the authority that issued it with --ca-file
# labels:
#   row: H06
secured if input.transfer.secured == true

# METADATA
# title: The response is unambiguous HTTP
# description: Contradictory lengths, oversized headers and broken framing can be read in several ways.
# custom:
#   code: response_malformed
#   after: [tls_failed]
#   remedy: Fetch from a host that answers with plain HTTP/1.1
# labels:
#   row: H07
well_formed if input.transfer.well_formed == true
