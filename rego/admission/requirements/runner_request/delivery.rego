package admission.requirements.runner_request.delivery

import data.admission.lib.runner
import future.keywords.not

# METADATA
# title: No tool or MCP server of the run needs a server process on the runner
# description: MCP servers need an admitted transport that starts no command, or an entry of policy/mcp.yaml by which
#   they are started in a sandbox. Tools need a harness that accepts them in an admitted way. These are values in
#   policy/runners.yaml. Otherwise the harness would drop them silently.
# custom:
#   code: MCP_UNSUPPORTED_MESSAGE
#   each: attached
#   empty: allowed
#   after: [uri_not_allowlisted, harness_not_admitted]
#   remedy: MCP servers are not supported by the sidecar. Leave out those that a command starts, and tools if the
#     harness takes them over MCP only
#   reads: ["runners.harnesses.{agent.harness}", runners.tool_delivery, runners.mcp_transports, mcp.started]
# labels:
#   row: D16, D21, D57
delivered(item) if {
	item.kind == "mcp_server"
	item.starts_process == false
	item.transport in data.policy.runners.mcp_transports
}

delivered(item) if {
	item.kind == "mcp_server"
	item.starts_process == false
	item.transport == "stdio"
	is_object(data.policy.mcp.started[trim_prefix(item.id, "mcp_servers/")])
}

delivered(item) if {
	item.kind == "tool"
	data.policy.runners.harnesses[runner.harness(input.agent)].custom_tools in data.policy.runners.tool_delivery
}

# METADATA
# title: Every tool and every MCP server of the run has a name of its own
# description: Of two with one name, it is unclear which would be called, and the harness may drop one silently.
# custom:
#   code: name_not_unique
#   each: attached
#   empty: allowed
#   after: [uri_not_allowlisted]
#   remedy: Remove one of the two, or rename it
# labels:
#   row: D61
named_once(item) if item.occurrences == 1

# METADATA
# title: The address of every MCP server is a canonical HTTPS URL
# description: Two parsers could read any other address differently. Schemes and ports are values in
#   policy/networks.yaml.
# custom:
#   code: mcp_url_not_canonical
#   each: mcp_servers
#   empty: allowed
#   after: [uri_not_allowlisted]
#   remedy: Write it as `https://host/path`, the host in lower case and the path at least `/`; leave out user name,
#     `:443`, `#`, a trailing `?`, and `.` or `..` as folders; write spaces, brackets and non-ASCII
#     letters as in `%C3%A9`
#   reads: [networks.schemes, networks.ports]
# labels:
#   row: D20
addressed(server) if server.transport == "stdio"

addressed(server) if {
	server.transport == "http"
	server.url.canonical == true
	server.url.scheme in data.policy.networks.schemes
	server.url.port in data.policy.networks.ports
}

# METADATA
# title: Every secret of the run is in an admitted form
# description: A sealed secret can only be opened with the private key of the runner. Admitted forms are values in
#   policy/runners.yaml; without `plain`, every secret has to be sealed.
# custom:
#   code: secret_form_not_admitted
#   waivable: false
#   each: secrets
#   empty: allowed
#   after: [uri_not_allowlisted]
#   remedy: "Where secrets have to be sealed, seal it with `engine runner seal`; otherwise send it as it is"
#   reads: [runners.payload_secrets]
# labels:
#   row: D32
secret_form_admitted(secret) if {
	secret.sealed == false
	"plain" in data.policy.runners.payload_secrets
}

secret_form_admitted(secret) if {
	secret.sealed == true
	"sealed" in data.policy.runners.payload_secrets
}

# METADATA
# title: The runner posts only to admitted origins
# description: The runner sends a token of the run there. Origins are values in policy/runners.yaml.
# custom:
#   code: endpoint_not_allowlisted
#   each: endpoints
#   empty: allowed
#   after: [uri_not_allowlisted]
#   remedy: Use an endpoint whose origin is listed in policy/runners.yaml, or ask for it to be added
#   reads: [runners.endpoints]
# labels:
#   row: D29
endpoint_allowlisted(endpoint) if {
	endpoint.canonical == true
	endpoint.origin in data.policy.runners.endpoints
}
