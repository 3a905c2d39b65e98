package admission.requirements.runner_request.boundary

import data.admission.lib.runner
import future.keywords.not

# METADATA
# title: The enforcement mode of the declared boundaries is admitted
# description: Enforcement modes are values in policy/runners.yaml.
# custom:
#   code: enforcement_not_admitted
#   waivable: false
#   remedy: Declare the boundaries with an enforcement mode that is listed in policy/runners.yaml
#   reads: [runners.enforcements]
# labels:
#   row: D10, D20
enforcement_admitted if input.sandbox_permission.enforcement == "undeclared"

enforcement_admitted if input.sandbox_permission.enforcement in data.policy.runners.enforcements

# METADATA
# title: A run on the runner's own machine declares no restricted network
# description: The machine cannot control the network of a single run, so the declaration would have no effect,
#   whatever enforcement mode is requested.
# custom:
#   code: LOCAL_NETWORK_UNSUPPORTED_MESSAGE
#   fixed: true
#   after: [backend_not_admitted]
#   remedy: Use a remote backend that was shown to control its network, or declare the network unrestricted
#   reads: ["runners.backends.{agent.sandbox}", runners.default_backend]
# labels:
#   row: D07, D10
network_open_on_runner if input.sandbox_permission.network == "unrestricted"

network_open_on_runner if {
	input.sandbox_permission.network == "restricted"
	runner.host(input.agent) == "remote"
}

# METADATA
# title: A restricted network is declared only for a backend that was shown to enforce it
# description: The proof comes from this engine's own probe of this backend; policy/runners.yaml states what counts.
# custom:
#   code: egress_not_proven
#   fixed: true
#   after: [LOCAL_NETWORK_UNSUPPORTED_MESSAGE]
#   proof: only evidence for the backend of this run and for this boundary counts
#   remedy: Use a backend that was shown to control its network, or declare the network unrestricted
#   reads: [runners.boundaries.network]
# labels:
#   row: D08, D10, H22
network_held if input.sandbox_permission.network == "unrestricted"

network_held if {
	input.sandbox_permission.network == "restricted"
	runner.proven(input, "network")
}

# METADATA
# title: A file system boundary is declared only for a backend that was shown to enforce it
# description: The proof comes from this engine's own probe of this backend, whatever enforcement is requested.
# custom:
#   code: FILESYSTEM_UNSUPPORTED_MESSAGE
#   fixed: true
#   after: [backend_not_admitted]
#   proof: only evidence for the backend of this run and for this boundary counts
#   remedy: Leave out the file system, or use a backend that was shown to enforce a file system jail
#   reads: [runners.boundaries.filesystem]
# labels:
#   row: D09, D10, H22
filesystem_held if input.sandbox_permission.filesystem_stated == false

filesystem_held if {
	input.sandbox_permission.filesystem_stated == true
	runner.proven(input, "filesystem")
}
