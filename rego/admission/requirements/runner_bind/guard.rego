package admission.requirements.runner_bind.guard

import future.keywords.not

# METADATA
# title: A listener that others can reach requires a token or client certificates
# description: Accepted guards, and the addresses that need none, are values in policy/runners.yaml.
# custom:
#   code: bind_without_token
#   fixed: true
#   remedy: Set AGENTA_AGENT_RUNNER_TOKEN, issue tokens with `engine tokens issue`, name an authority for client
#     certificates with --tls-client-ca, or bind to 127.0.0.1
#   reads: [runners.listeners.unguarded, runners.listeners.guards]
# labels:
#   row: H04, D02
guarded if input.listener.reach in data.policy.runners.listeners.unguarded

guarded if {
	some guard in data.policy.runners.listeners.guards
	input.gate[guard] == true
}
