package admission.requirements.runner_uri.allowlist

import data.admission.lib.runner
import future.keywords.not

# METADATA
# title: The requested runner is on the allowlist
# description: A run sends its secrets there. Admitted origins and the default runner are values in
#   policy/runners.yaml.
# custom:
#   code: uri_not_allowlisted
#   remedy: Name a runner listed in policy/runners.yaml by its plain URL, or none to use the default
#   reads: [runners.uri.allowlist]
# labels:
#   row: D41, D42, D43
allowlisted if {
	input.uri.source in {"override", "inherited"}
	input.uri.canonical == true
	input.uri.origin in data.policy.runners.uri.allowlist
}

allowlisted if input.uri.source == "default"

# METADATA
# title: A run leaves this machine over TLS only
# description: It carries secrets. Whether plain HTTP to this machine itself is admitted is a value in
#   policy/runners.yaml.
# custom:
#   code: uri_unencrypted
#   after: [uri_not_allowlisted]
#   remedy: Use an https address
#   reads: [runners.uri.unencrypted, runners.uri.default]
# labels:
#   row: D41
confidential if runner.encrypted

confidential if runner.plain
