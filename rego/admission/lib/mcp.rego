# MCP servers: their entries in policy/mcp.yaml, where they run, and which entries of a request are left out.
package admission.lib.mcp

import future.keywords.not

# The entry of a server in policy/mcp.yaml.
admitted(server) := data.policy.mcp.servers[server]

admitted(server) := data.policy.mcp.started[server]

# The admitted entry of a server's tool.
pinned(tool) := admitted(tool.server).tools[tool.remote]

# The relay is asked for, in a sandbox where it may run.
relayed if {
	input.relay.stated == true
	input.relay.value in data.policy.mcp.sandboxes
}

# The entry of a server that the runner starts in a sandbox. Its command is the policy's and never the request's.
started(server) := data.policy.mcp.started[server.id] if {
	relayed
	server.transport == "stdio"
	server.starts_process == false
	server.url_stated == false
}

# Whether the run takes place on the runner's own machine (`runner`) or elsewhere (`remote`).
host := data.policy.runners.backends[_backend].host

_backend := input.backend.value if input.backend.stated == true

_backend := data.policy.runners.default_backend if input.backend.stated == false

# The address leads to the server from where the run takes place. Plain HTTP is only canonical to loopback.
reachable(server) if startswith(server.url.origin, "https://")

reachable(server) if {
	_loopback(server)
	host == "runner"
}

# The entry delivers nothing and starts no process, or its address is the loopback of another machine.
left_out(server) if {
	input.phase == "delivery"
	input.relay.stated == false
	server.deliverable == false
	server.starts_process == false
}

left_out(server) if {
	input.phase in {"plan", "delivery"}
	server.starts_process == false
	server.transport == "http"
	_loopback(server)
	host == "remote"
}

_loopback(server) if startswith(server.url.origin, "http://")
