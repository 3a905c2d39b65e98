package admission.requirements.artifact.checks

import data.admission.lib.artifact
import future.keywords.not

# METADATA
# title: The artifact passed its sandbox check and its validation check
# description: Generated code is untrusted until exactly these bytes have passed both checks. The newest check of
#   each kind counts.
# custom:
#   code: artifact_not_validated
#   remedy: Run the artifact through the code gateway, which checks it in a sandbox and validates its output
# labels:
#   row: A01
#   threat: ACE
validated if {
	is_string(input.sha256)
	is_object(artifact.passed("sandbox"))
	is_object(artifact.passed("validation"))
}

# METADATA
# title: The artifact ran in a sandbox that its kind of code requires
# description: The admitted kinds of backends for each kind of code are values in policy/sandbox.yaml.
# custom:
#   code: artifact_not_isolated
#   fixed: true
#   remedy: Run it again in a profile whose backend policy/sandbox.yaml admits for this kind of code
#   reads: ["sandbox.artifact_isolation.{kind}"]
#   after: [artifact_not_validated]
# labels:
#   row: A02
#   threat: ACE
isolated if artifact.passed("sandbox").ran_in in data.policy.sandbox.artifact_isolation[input.kind]
