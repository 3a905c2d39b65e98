# MCP servers: their entries in policy/mcp.yaml, and which entries of a request are empty.
package admission.lib.mcp

import future.keywords.not

# The entry of a server in policy/mcp.yaml.
admitted(server) := data.policy.mcp.servers[server]

# The admitted entry of a server's tool.
pinned(tool) := admitted(tool.server).tools[tool.remote]

# The entry delivers nothing and starts no process; it is left out.
left_out(server) if {
	input.phase == "delivery"
	server.deliverable == false
	server.starts_process == false
}
