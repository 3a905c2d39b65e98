package admission.requirements.mcp.server

import data.admission.lib.mcp
import future.keywords.not

# METADATA
# title: No MCP server is started by a command
# description: A server started by a command would run on the runner's machine, outside every sandbox. Transports are
#   values in policy/runners.yaml. Through the relay, the runner starts servers of policy/mcp.yaml in a sandbox.
# custom:
#   code: MCP_UNSUPPORTED_MESSAGE
#   each: servers
#   empty: allowed
#   remedy: MCP servers are not supported by the sidecar. Leave out servers that are started by a command; use one
#     that is reached over HTTP, or name one that policy/mcp.yaml lists under `started`, without its command
#   reads: [runners.mcp_transports, mcp.sandboxes]
# labels:
#   row: D12, D13, D35
supported(server) if {
	server.starts_process == false
	server.transport in data.policy.runners.mcp_transports
}

supported(server) if mcp.left_out(server)

supported(server) if {
	mcp.relayed
	server.transport == "stdio"
	server.starts_process == false
}

# METADATA
# title: The address of the MCP server is a canonical URL
# description: Two parsers could read any other address differently.
# custom:
#   code: url_not_canonical
#   each: servers
#   empty: allowed
#   after: [MCP_UNSUPPORTED_MESSAGE]
#   remedy: Use a plain https URL without user name, query, trailing dot or non-ASCII characters
# labels:
#   row: D34
addressed(server) if server.url.canonical == true

addressed(server) if mcp.left_out(server)

addressed(server) if {
	mcp.relayed
	server.transport == "stdio"
	server.url_stated == false
}

addressed(server) if {
	input.phase == "list"
	server.url_stated == false
}

# METADATA
# title: The MCP server is admitted with this address and these secrets
# description: Servers, their origins and the names of secrets that they may receive are values in policy/mcp.yaml. A
#   list of tools alone needs no address. A server that is started gets no secret.
# custom:
#   code: server_not_admitted
#   each: servers
#   empty: allowed
#   after: [url_not_canonical]
#   remedy: Use a server, origin and secrets listed in policy/mcp.yaml, or ask for this server to be added
#   reads: ["mcp.servers.{id}"]
#   proof: the names of secrets are checked to be a list, and each must be listed in the policy
# labels:
#   row: D34, D35
admitted(server) if {
	mcp.admitted(server.id).transport == server.transport
	_at_its_origin(server)
	is_array(server.secrets)
	every secret in server.secrets { secret in mcp.admitted(server.id).secrets }
}

admitted(server) if mcp.left_out(server)

admitted(server) if {
	is_object(mcp.started(server))
	server.secrets == []
}

_at_its_origin(server) if {
	is_string(server.url.origin)
	server.url.origin == mcp.admitted(server.id).origin
}

_at_its_origin(server) if {
	input.phase == "list"
	server.url_stated == false
}

# METADATA
# title: The id of the MCP server is unambiguous
# description: An id with `__`, with `_` at an end, or with letters that look like those of another server of the
#   request could make its tools look like tools of that server.
# custom:
#   code: server_id_ambiguous
#   each: servers
#   empty: allowed
#   remedy: Give the server a unique id of plain letters, without `__` and without `_` at an end
# labels:
#   row: B37, H14
clear(server) if {
	server.unambiguous == true
	server.confusable == false
}

# METADATA
# title: All tools that the server lists can be read
# description: A list that is truncated, too long or contains anything but tool definitions is refused as a whole.
# custom:
#   code: definitions_unreadable
#   each: servers
#   empty: allowed
#   remedy: Send all pages of the server's tools/list result unchanged
# labels:
#   row: H14
listed(server) if server.listing == "whole"

listed(server) if {
	server.listing == "none"
	input.phase in {"plan", "delivery"}
}
