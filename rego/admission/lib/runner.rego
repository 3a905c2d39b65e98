# Where a run takes place, and which boundaries its backend was shown to enforce.
package admission.lib.runner

import future.keywords.not

# The harness of a run: the stated one, else the default in policy/runners.yaml.
harness(agent) := agent.harness if agent.harness_stated == true

harness(agent) := data.policy.runners.default_harness if agent.harness_stated == false

# The backend of a run: the stated one, else the default in policy/runners.yaml.
backend(agent) := agent.sandbox if agent.sandbox_stated == true

backend(agent) := data.policy.runners.default_backend if agent.sandbox_stated == false

# Whether the backend is on the runner's own machine (`runner`) or elsewhere (`remote`).
host(agent) := data.policy.runners.backends[backend(agent)].host

# The boundary, as named in a proof, that a declaration of this kind requires.
boundary(kind) := data.policy.runners.boundaries[kind].boundary

# The engine's own probe showed that the backend of the run enforces the boundary; of a remote platform, only what it
# stated for this run counts.
proven(request, kind) if {
	some result in request.boundaries
	result.backend == backend(request.agent)
	result.boundary == boundary(kind)
	result.kind in data.policy.runners.boundaries[kind].enforced_by
	result.enforced == true
	_of_this_run(result, request)
}

_of_this_run(result, request) if {
	is_string(result.evidence)
	host(request.agent) == "runner"
}

_of_this_run(result, request) if {
	host(request.agent) == "remote"
	is_string(request.content)
	result.run == request.content
}

# A kind of tool whose calls never run on the runner's own machine.
off_runner(kind) if data.policy.runners.tools[kind].runs_on in {"sandbox", "client"}

# The URL of the runner: the one in the request, else the default in policy/runners.yaml.
address := input.uri.text if input.uri.source in {"override", "inherited"}

address := data.policy.runners.uri.default if input.uri.source == "default"

# The runner is reached over TLS.
encrypted if startswith(address, "https://")

# The runner is reached over plain HTTP, where policy/runners.yaml admits that.
plain if {
	startswith(address, "http://")
	authority := split(address, "/")[2]
	some place in data.policy.runners.uri.unencrypted
	some host in _hosts[place]
	startswith(authority, host)
	regex.match(`^(:[0-9]{1,5})?$`, substring(authority, count(host), -1))
}

# Whether the runner gets the token and the client certificate of this gate.
#
# METADATA
# custom:
#   proof: no credentials are sent if anything is missing
default credentials := false

credentials if {
	some origin in data.policy.runners.uri.credentials
	startswith(concat("", [address, "/"]), concat("", [origin, "/"]))
}

_hosts := {"loopback": ["127.0.0.1", "localhost", "[::1]"]}
