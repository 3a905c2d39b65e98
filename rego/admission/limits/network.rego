# One connection to exactly this address, at one of the resolved addresses of its host, within the caps.
package admission.limits.network

import data.admission.lib.fetch
import future.keywords.not

# METADATA
# custom:
#   proof: an address without text is dropped, and then the counts differ; without the caps of a purpose there are none
limits := object.union(_caps, {
	"purpose": input.network.purpose,
	"url_digest": input.network.url.digest,
	"host": input.network.url.host,
	"port": input.network.url.port,
	"addresses": addresses,
}) if {
	is_array(input.addresses)
	addresses := [address.text | some address in input.addresses; is_string(address.text)]
	count(addresses) > 0
	count(addresses) == count(input.addresses)
}

_caps := {
	"status": fetch.status,
	"max_bytes": data.policy.networks.fetch.max_bytes,
	"seconds": data.policy.networks.fetch.seconds,
} if {
	input.network.purpose == "material"
}

# What all tunnels of one run may move is a limit of point `sandbox`.
_caps := {"status": null, "max_bytes": null, "seconds": data.policy.networks.tunnels.seconds} if {
	input.network.purpose == "tunnel"
}
