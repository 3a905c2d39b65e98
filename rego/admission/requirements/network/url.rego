package admission.requirements.network.url

import data.admission.lib.fetch
import future.keywords.not

# METADATA
# title: The address has an admitted scheme
# description: Anyone on the network path can read and change what comes over `http`. Schemes are values in
#   policy/networks.yaml.
# custom:
#   code: unsafe_scheme
#   after: [url_count_not_admitted]
#   remedy: Name an address that begins with `https://`
#   reads: [networks.schemes]
# labels:
#   row: A32
scheme_safe if input.network.url.scheme in data.policy.networks.schemes

# METADATA
# title: The address is a canonical URL
# description: Two parsers could read any other address differently. Ports are values in policy/networks.yaml.
# custom:
#   code: url_not_canonical
#   after: [unsafe_scheme]
#   remedy: Write it as `https://host/path`, the host by name, not by address, and in lower case, the path at least
#     `/`; leave out user name, `:443`, `#`, a trailing `?`, and `.` or `..` as folders; write spaces, brackets and
#     non-ASCII letters as in `%C3%A9`
#   reads: [networks.ports]
# labels:
#   row: A33
canonical if {
	input.network.url.canonical == true
	input.network.url.port in data.policy.networks.ports
}

# METADATA
# title: Both the caller and the organization allow exactly this host
# description: The exact host name of a canonical address, named by the caller and listed in policy/networks.yaml for
#   its purpose, where `*.domain` lists every host below a domain. Neither list can add to the other.
# custom:
#   code: host_not_allowlisted
#   after: [unsafe_scheme]
#   facts: {host: network.url.host}
#   remedy: Name exactly the host of the address, and have compliance list it in policy/networks.yaml under `hosts`, for
#     commands in the sandbox under `tunnels.hosts`
#   reads: [networks.hosts, networks.tunnels.hosts]
# labels:
#   row: A31, A33, A104
host_allowlisted if {
	is_string(input.network.url.host)
	is_array(input.network.allowed_hosts)
	input.network.url.host in _allowed
	fetch.listed(input.network.purpose, input.network.url.host)
}

# METADATA
# description: The names that the caller allows.
# custom:
#   proof: hosts are only looked up in it, so an empty set refuses every host
_allowed contains host.name if some host in input.network.allowed_hosts

# METADATA
# title: Each allowed host is one exact host name
# description: A pattern or an address would allow more hosts than a person can review.
# custom:
#   code: allowed_host_not_exact
#   each: network.allowed_hosts
#   empty: allowed
#   facts: {host: name}
#   remedy: Name each host in full and in lower case, such as `data.example.org`; no address, scheme, port or `*`
# labels:
#   row: A31
host_exact(host) if host.exact == true
