# MCP servers: what policy says of one, and which entries of a delivery hold nothing to deliver.
package admission.lib.mcp

import future.keywords.not

# What policy/mcp.yaml says of a server.
admitted(server) := data.policy.mcp.servers[server]

# What somebody admitted of a tool of a server.
pinned(tool) := admitted(tool.server).tools[tool.remote]

# Nothing can be delivered of it and nothing starts: a delivery leaves it out.
left_out(server) if {
	input.phase == "delivery"
	server.deliverable == false
	server.starts_process == false
}
