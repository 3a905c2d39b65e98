package admission.requirements.media.address

import data.admission.lib.address
import data.admission.lib.media
import future.keywords.not

# METADATA
# title: The addresses of the host are known
# description: The engine looks up hosts that a value names, and no others, so that nothing leaks through the name.
#   A lookup that fails or is late gives none.
# custom:
#   code: address_unknown
#   after: [url_media_disabled, scheme_not_allowlisted, url_not_canonical, host_not_allowlisted]
#   remedy: Ask again when the host can be looked up
# labels:
#   row: B40
known if media.brought

known if {
	media.by_url
	is_array(input.addresses)
	count(input.addresses) > 0
}

# METADATA
# title: Every address of the host is one of the public internet
# description: One address that is not refuses the host. Ranges are values in policy/addresses.yaml.
# custom:
#   code: address_not_public
#   each: addresses
#   empty: allowed
#   after: [url_media_disabled, scheme_not_allowlisted, url_not_canonical, host_not_allowlisted, address_unknown]
#   remedy: Bring the content itself; the name of this host leads to a machine that is not public
# labels:
#   row: B40
public(one) if address.public(one)
