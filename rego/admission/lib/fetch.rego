# What a connection is held to at its decision points.
package admission.lib.fetch

import data.admission.lib.host
import data.admission.lib.origin
import future.keywords.not

# The only HTTP status whose body is material.
status := 200

# The policy lists the host for this purpose.
listed("material", name) if origin.listed(name)

listed("tunnel", name) if tunnelled(name)

# Commands in the sandbox may connect to the host, by its name or by a domain that it is in.
tunnelled(name) if {
	some form in host.names(name)
	form in data.policy.networks.tunnels.hosts
}
