package admission.requirements.network.address

import data.admission.lib.address
import future.keywords.not

# METADATA
# title: The host name was resolved
# description: The engine resolves only hosts that the caller and the policy name. A failed or late lookup gives no
#   address.
# custom:
#   code: address_unknown
#   after: [network_disabled, host_not_allowlisted, url_not_canonical]
#   facts: {host: network.url.host}
#   remedy: Correct the host name, or retry when it can be resolved
# labels:
#   row: H06
known if {
	is_array(input.addresses)
	count(input.addresses) > 0
}

# METADATA
# title: Every address of the host is public
# description: A single address that is not public refuses the host. Ranges are values in policy/addresses.yaml.
# custom:
#   code: address_not_public
#   each: addresses
#   empty: allowed
#   after: [address_unknown]
#   remedy: Name another source; this host name has an address that is not public
# labels:
#   row: H06
public(ip) if address.public(ip)
