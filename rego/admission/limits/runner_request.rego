# What a run may use: this harness and sandbox, exactly these tools and servers.
package admission.limits.runner_request

import data.admission.lib.runner
import future.keywords.not

# METADATA
# custom:
#   proof: an incomplete entry is dropped, and then the counts differ
limits := {
	"harness": harness,
	"harness_kwargs": kwargs,
	"model": _model,
	"sandbox": {
		"backend": runner.backend(input.agent),
		"network": input.sandbox_permission.network,
		"filesystem": _filesystem,
		"proven": array.concat(_network_proof, _filesystem_proof),
	},
	"permission_policy": _permission_policy,
	"calls": data.policy.runners.calls[_permission_policy],
	"tools": tools,
	"mcp_servers": servers,
	"endpoints": endpoints,
} if {
	harness := runner.harness(input.agent)
	is_string(harness)
	is_array(input.agent.harness_kwargs)
	kwargs := [kwarg.id | some kwarg in input.agent.harness_kwargs; is_string(kwarg.id)]
	count(kwargs) == count(input.agent.harness_kwargs)
	is_array(input.tools)
	tools := [{"name": tool.id, "kind": tool.kind, "permission": _permission_policy} |
		some tool in input.tools
		is_string(tool.id)
		is_string(tool.kind)
	]
	count(tools) == count(input.tools)
	is_array(input.mcp_servers)
	servers := [server | some stated in input.mcp_servers; server := _server(stated)]
	count(servers) == count(input.mcp_servers)
	is_array(input.endpoints)
	endpoints := [endpoint.origin | some endpoint in input.endpoints; is_string(endpoint.origin)]
	count(endpoints) == count(input.endpoints)
	count(input.attached) == count(input.tools) + count(input.mcp_servers)
}

_server(stated) := {
	"name": stated.id,
	"transport": stated.transport,
	"host": stated.url.host,
	"port": stated.url.port,
	"permission": _permission_policy,
} if {
	is_string(stated.id)
	is_string(stated.transport)
	is_string(stated.url.host)
	is_number(stated.url.port)
}

_server(stated) := {"name": stated.id, "transport": "stdio", "permission": _permission_policy} if {
	stated.transport == "stdio"
	is_object(data.policy.mcp.started[stated.id])
}

_permission_policy := input.agent.permission_policy if {
	input.agent.permission_policy_stated == true
	is_string(input.agent.permission_policy)
}

_permission_policy := data.policy.runners.default_permission_policy if {
	input.agent.permission_policy_stated == false
}

_model := "" if input.agent.model.stated == false

_model := input.agent.model.id if {
	input.agent.model.stated == true
	is_string(input.agent.model.id)
}

_filesystem := "undeclared" if input.sandbox_permission.filesystem_stated == false

_filesystem := input.sandbox_permission.filesystem if {
	input.sandbox_permission.filesystem_stated == true
	is_string(input.sandbox_permission.filesystem)
}

_network_proof := [] if input.sandbox_permission.network == "unrestricted"

_network_proof := [runner.boundary("network")] if input.sandbox_permission.network == "restricted"

_filesystem_proof := [] if input.sandbox_permission.filesystem_stated == false

_filesystem_proof := [runner.boundary("filesystem")] if input.sandbox_permission.filesystem_stated == true
