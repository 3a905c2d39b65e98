# The media that may be passed to a model, and where it may be fetched: one host at exactly the resolved addresses.
package admission.limits.media

import data.admission.lib.media
import future.keywords.not

limits := {
	"kind": input.media.kind,
	"media_type": input.media.media_type,
	"max_bytes": data.policy.media.kinds[input.media.kind].max_bytes,
	"destinations": [],
} if {
	media.brought
}

# METADATA
# custom:
#   proof: an address without text is dropped, and then the counts differ
limits := {
	"kind": input.media.kind,
	"media_type": input.media.media_type,
	"max_bytes": min([data.policy.media.kinds[input.media.kind].max_bytes, data.policy.media.url.max_bytes]),
	"destinations": [{
		"scheme": input.media.url.scheme,
		"host": input.media.url.host,
		"port": input.media.url.port,
		"addresses": addresses,
	}],
} if {
	media.by_url
	is_array(input.addresses)
	addresses := [address.text | some address in input.addresses; is_string(address.text)]
	count(addresses) > 0
	count(addresses) == count(input.addresses)
}
