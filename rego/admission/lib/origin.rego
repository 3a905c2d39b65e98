# The origin that a record states.
#
# The engine sets `remote` if the record names a URL. It is a boolean of its own and not the absence of `url`,
# so that a record that lost its URL does not become an offline one.
package admission.lib.origin

import data.admission.lib.host
import future.keywords.not

# Nothing was or will be retrieved over the network for this record.
offline(record) if {
	record.kind in {"fixture", "synthetic", "transformed"}
	record.remote == false
}

# METADATA
# description: The admitted hosts as a set, so that a host is looked up and not searched for.
# custom:
#   proof: hosts are only looked up in it, so an empty set refuses every host
hosts contains host if some host in data.policy.networks.hosts

# The host is listed in policy/networks.yaml, by its name or by a domain that it is in.
listed(name) if {
	some form in host.names(name)
	form in hosts
}

# The record was or will be retrieved from one address.
external(record) if {
	record.kind == "external"
	record.remote == true
	is_object(record.url)
}
