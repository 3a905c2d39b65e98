# Which hosts a value names: names, domains and ranges of addresses, as engine.values.hosts writes them.
#
# An origin is canonical: `scheme://host`, with a port unless it is the default.
package admission.lib.host

import data.admission.lib.address
import future.keywords.not

# A host and the domains that it is in: for `a.b.example`, itself, `*.b.example` and `*.example`.
#
# METADATA
# custom:
#   proof: it collects parts of one text that is present
names(host) := {host} | {concat(".", array.concat(["*"], array.slice(parts, index, count(parts)))) |
	some index, _ in parts
	index > 0
} if {
	parts := split(host, ".")
}

# Scheme, host and port of an origin; the port is empty if it is the default.
#
# METADATA
# custom:
#   proof: an origin that does not match has no first match, and no parts
parts(origin) := {"scheme": found[1], "host": found[2], "port": found[3]} if {
	expression := `^(https?)://(\[[0-9a-f:]+\]|[^/:\[\]]+)(?::([0-9]+))?$`
	found := regex.find_all_string_submatch_n(expression, origin, 1)[0]
}

# The address that a host is; a name is none.
literal(host) := trim(host, "[]") if {
	startswith(host, "[")
	endswith(host, "]")
}

literal(host) := host if regex.match(`^[0-9.]+$`, host)

# The host is on the public internet, as far as its name or address shows.
public(host) if {
	address.public({"text": literal(host), "family": _family(host), "scoped": false, "isatap": false})
}

# METADATA
# custom:
#   proof: the list of names is present and not empty
public(host) if {
	is_string(host)
	host != ""
	not literal(host)
	count(data.policy.addresses.local_names) > 0
	every local in data.policy.addresses.local_names {
		not local in names(host)
	}
}

_family(host) := "ipv6" if startswith(host, "[")

_family(host) := "ipv4" if regex.match(`^[0-9.]+$`, host)
