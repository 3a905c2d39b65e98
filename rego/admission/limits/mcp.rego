# Which servers may be delivered or started, and which entries are left out.
package admission.limits.mcp

import data.admission.lib.mcp
import future.keywords.not

limits := {
	"phase": input.phase,
	"relay": _relay,
	"servers": _servers,
	"started": _started,
	"skipped": _skipped,
	"tools": _tools,
	"client_methods": data.policy.mcp.methods.client,
	"server_methods": data.policy.mcp.methods.server,
} if {
	input.phase in {"plan", "delivery"}
	(count(_servers) + count(_started)) + count(_skipped) == count(input.servers)
	count(_tools) == count(input.tools)
}

limits := {
	"phase": "list",
	"relay": _relay,
	"servers": [],
	"started": [],
	"skipped": [],
	"tools": _tools,
	"client_methods": data.policy.mcp.methods.client,
	"server_methods": data.policy.mcp.methods.server,
} if {
	input.phase == "list"
	count(_tools) == count(input.tools)
}

_relay := "" if input.relay.stated == false

_relay := input.relay.value if mcp.relayed

# METADATA
# custom:
#   proof: an entry that is not complete is dropped, and then the counts differ
_started := [limit |
	some stated in input.servers
	is_string(stated.id)
	row := mcp.started(stated)
	limit := {"name": stated.id, "command": row.command, "package": row.package}
] if {
	is_array(input.servers)
}

# METADATA
# custom:
#   proof: an incomplete entry is dropped, and then the counts differ
_servers := [limit | some stated in input.servers; limit := _server(stated)] if is_array(input.servers)

# METADATA
# custom:
#   proof: an entry without an id is dropped, and then the counts differ
_skipped := [stated.id | some stated in input.servers; is_string(stated.id); mcp.left_out(stated)] if {
	is_array(input.servers)
}

# METADATA
# custom:
#   proof: an entry without an id is dropped, and then the counts differ
_tools := [tool.id | some tool in input.tools; is_string(tool.id)] if is_array(input.tools)

_server(stated) := {
	"name": stated.id,
	"origin": stated.url.origin,
	"address": stated.url.digest,
	"secrets": stated.secrets,
} if {
	stated.deliverable == true
	mcp.reachable(stated)
	is_string(stated.id)
	is_string(stated.url.origin)
	is_string(stated.url.digest)
	is_array(stated.secrets)
}
