package admission.requirements.mcp.relay

import data.admission.lib.mcp
import future.keywords.not

# METADATA
# title: The relay runs inside an admitted sandbox
# description: Outside of one, it and the servers behind it could reach files, network and secrets of the runner.
#   Profiles are values in policy/mcp.yaml.
# custom:
#   code: relay_not_sandboxed
#   waivable: false
#   remedy: State a profile that policy/mcp.yaml lists under sandboxes as the relay, or leave it out
#   reads: [mcp.sandboxes]
# labels:
#   row: D36
sandboxed if input.relay.stated == false

sandboxed if mcp.relayed

# METADATA
# title: The backend of the run is known
# description: Loopback is another machine on a remote backend. Backends are values in policy/runners.yaml.
# custom:
#   code: backend_not_admitted
#   waivable: false
#   remedy: Use a backend listed in policy/runners.yaml
#   reads: [runners.backends, runners.default_backend]
# labels:
#   row: D37
placed if mcp.host in {"runner", "remote"}
