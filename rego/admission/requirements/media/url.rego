package admission.requirements.media.url

import data.admission.lib.host
import data.admission.lib.media
import future.keywords.not

# METADATA
# title: Media by URL is enabled, with schemes, hosts and size limit set
# description: The switch alone is not enough; policy/media.yaml must also state schemes, hosts and a size.
# custom:
#   code: url_media_disabled
#   remedy: Send the content itself, as base64 in `data` or as a file in `path`, or have media by URL enabled in
#     policy/media.yaml
#   reads: [media.allow_url_media_sources, media.url.schemes, media.url.hosts, media.url.max_bytes]
# labels:
#   row: B39, B45
admitted if media.brought

admitted if {
	media.by_url
	data.policy.media.allow_url_media_sources == true
	count(data.policy.media.url.schemes) > 0
	count(data.policy.media.url.hosts) > 0
	data.policy.media.url.max_bytes > 0
}

# METADATA
# title: The URL scheme is on the allowlist
# description: Schemes are values in policy/media.yaml.
# custom:
#   code: scheme_not_allowlisted
#   after: [url_media_disabled]
#   remedy: Send an address with a scheme that is listed in policy/media.yaml
#   reads: [media.url.schemes]
# labels:
#   row: B40
scheme_allowlisted if media.brought

scheme_allowlisted if {
	media.by_url
	input.media.url.scheme in data.policy.media.url.schemes
}

# METADATA
# title: The address is a canonical URL
# description: Two parsers could read any other address differently. Ports are values in policy/networks.yaml.
# custom:
#   code: url_not_canonical
#   after: [scheme_not_allowlisted]
#   remedy: Write it as `https://host/path`, the host by name, not by address, and in lower case, the path at least
#     `/`; leave out user name, `:443`, `#`, a trailing `?`, and `.` or `..` as folders; write spaces, brackets and
#     non-ASCII letters as in `%C3%A9`
#   reads: [networks.ports]
# labels:
#   row: B40
canonical if media.brought

canonical if {
	media.by_url
	input.media.url.canonical == true
	input.media.url.port in data.policy.networks.ports
}

# METADATA
# title: The host is on the allowlist
# description: The exact host name; a subdomain is another host. Hosts are values in policy/media.yaml.
# custom:
#   code: host_not_allowlisted
#   after: [url_not_canonical]
#   remedy: Send the content itself, or ask for this host to be added to policy/media.yaml
#   reads: [media.url.hosts]
# labels:
#   row: B40
host_allowlisted if media.brought

host_allowlisted if {
	media.by_url
	some form in host.names(input.media.url.host)
	form in data.policy.media.url.hosts
}
