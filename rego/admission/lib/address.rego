# Which addresses on the network are those of the public internet.
#
# The engine computes `family`, `isatap` and `scoped`; `text` is present only for an address in canonical form.
package admission.lib.address

import future.keywords.not

public(address) if {
	is_string(address.text)
	address.scoped == false
	address.isatap == false
	count(data.policy.addresses.refused) > 0
	some range in data.policy.addresses.public
	range.family == address.family
	net.cidr_contains(range.cidr, address.text)
	every refused in data.policy.addresses.refused {
		net.cidr_contains(refused.cidr, address.text) == false
	}
}
