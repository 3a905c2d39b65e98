# One transfer: of exactly this address, from one of the resolved addresses of its host, within the caps.
package admission.limits.network

import data.admission.lib.fetch
import future.keywords.not

# METADATA
# custom:
#   proof: an address without text is dropped, and then the counts differ
limits := {
	"url_digest": input.network.url.digest,
	"host": input.network.url.host,
	"port": input.network.url.port,
	"addresses": addresses,
	"status": fetch.status,
	"max_bytes": data.policy.networks.fetch.max_bytes,
	"seconds": data.policy.networks.fetch.seconds,
} if {
	is_array(input.addresses)
	addresses := [address.text | some address in input.addresses; is_string(address.text)]
	count(addresses) > 0
	count(addresses) == count(input.addresses)
}
