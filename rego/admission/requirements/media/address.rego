package admission.requirements.media.address

import data.admission.lib.address
import data.admission.lib.media
import future.keywords.not

# METADATA
# title: The host name was resolved
# description: The engine resolves only hosts that the policy names, so that lookups leak no other names. A failed or
#   late lookup gives no address.
# custom:
#   code: address_unknown
#   after: [host_not_allowlisted]
#   remedy: Correct the host name, or retry when it can be resolved
# labels:
#   row: B40
known if media.brought

known if {
	media.by_url
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
#   remedy: Send the content itself; this host name has an address that is not public
# labels:
#   row: B40
public(ip) if address.public(ip)
