# Where a run takes place, and what its backend was shown to hold.
package admission.lib.runner

import future.keywords.not

# The backend that a run states, else the one in policy/runners.yaml.
backend(agent) := agent.sandbox if agent.sandbox_stated == true

backend(agent) := data.policy.runners.default_backend if agent.sandbox_stated == false

# Whether it is on the runner's own machine (`runner`) or elsewhere (`remote`).
host(agent) := data.policy.runners.backends[backend(agent)].host

# The boundary, as a proof names it, that a declaration of this kind stands on.
boundary(kind) := data.policy.runners.boundaries[kind].boundary

# The backend of the run was shown to hold the boundary: by the engine's own probe and nobody's word.
proven(request, kind) if {
	some held in request.boundaries
	held.backend == backend(request.agent)
	held.boundary == boundary(kind)
	held.kind in data.policy.runners.boundaries[kind].held_by
	held.enforced == true
}

# A kind of tool whose calls are never carried out on the runner's own machine.
off_runner(kind) if data.policy.runners.tools[kind].runs_on in {"sandbox", "client"}

# The address that a run is taken to: the one that counts of the request, else the one in policy/runners.yaml.
address := input.uri.text if input.uri.source in {"override", "inherited"}

address := data.policy.runners.uri.default if input.uri.source == "default"

# It is reached over TLS.
encrypted if startswith(address, "https://")

# It is reached over plain HTTP, where policy/runners.yaml admits that.
plain if {
	startswith(address, "http://")
	authority := split(address, "/")[2]
	some place in data.policy.runners.uri.unencrypted
	some host in _hosts[place]
	startswith(authority, host)
	regex.match(`^(:[0-9]{1,5})?$`, substring(authority, count(host), -1))
}

_hosts := {"loopback": ["127.0.0.1", "localhost", "[::1]"]}
