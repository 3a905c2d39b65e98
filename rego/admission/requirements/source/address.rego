package admission.requirements.source.address

import data.admission.lib.origin
import future.keywords.not

# METADATA
# title: The address of every external record is a canonical HTTPS URL
# description: Two parsers could read any other address differently. Schemes and ports are values in
#   policy/networks.yaml.
# custom:
#   code: url_not_canonical
#   each: bundle.records
#   after: [record_kind_contradicted]
#   field: url
#   remedy: Write it as `https://host/path`, the host by name, not by address, and in lower case, the path at least
#     `/`; leave out user name, `:443`, `#`, a trailing `?`, and `.` or `..` as folders; write spaces, brackets and
#     non-ASCII letters as in `%C3%A9`
#   reads: [networks.schemes, networks.ports]
# labels:
#   row: A20
canonical(record) if origin.offline(record)

canonical(record) if {
	origin.external(record)
	record.url.canonical == true
	record.url.scheme in data.policy.networks.schemes
	record.url.port in data.policy.networks.ports
}

# METADATA
# title: Both the source bundle and the organization list the host of every external record
# description: The exact host name, in network.allowed_hosts of the source bundle and in policy/networks.yaml. A
#   subdomain is another host, and neither list can add to the other.
# custom:
#   code: host_not_allowlisted
#   each: bundle.records
#   after: [url_not_canonical]
#   field: bundle.network.allowed_hosts
#   facts: {host: url.host}
#   remedy: Add the exact host to network.allowed_hosts, or replace the record; policy/networks.yaml has to list it
#     under `hosts`, where compliance can add it
#   reads: [networks.hosts]
# labels:
#   row: A20, A104
host_allowlisted(record) if origin.offline(record)

host_allowlisted(record) if {
	origin.external(record)
	is_string(record.url.host)
	record.url.host != ""
	record.url.host in _allowed_hosts
	origin.listed(record.url.host)
}

# METADATA
# description: A set, so that hosts are looked up and the list is read only once.
# custom:
#   proof: hosts are only looked up in it, so an empty set refuses every host
_allowed_hosts contains host if some host in input.bundle.network.allowed_hosts
