package admission.requirements.artifact.checks

import data.admission.lib.artifact
import future.keywords.not

# METADATA
# title: The artifact passed its sandbox check and its validation check
# description: Generated code stays untrusted until the engine has seen both checks of exactly these bytes. The newest
#   check of each kind counts.
# custom:
#   code: artifact_not_validated
#   remedy: Run the artifact through the code gateway, which checks it in a sandbox and validates its output
# labels:
#   row: A01
validated if {
	is_string(input.sha256)
	is_object(artifact.passed("sandbox"))
	is_object(artifact.passed("validation"))
}

# METADATA
# title: The artifact ran in a sandbox that its kind of code requires
# description: Solution and verifier code needs a restricted process or a container; other generated code may also run
#   as WebAssembly.
# custom:
#   code: artifact_not_isolated
#   fixed: true
#   remedy: Run it again in a profile of policy/sandbox.yaml whose backend is a restricted process or a container
#   after: [artifact_not_validated]
# labels:
#   row: A02
isolated if artifact.passed("sandbox").ran_in in artifact.isolations(input.kind)
