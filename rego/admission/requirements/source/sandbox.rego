package admission.requirements.source.sandbox

import future.keywords.not

# METADATA
# title: Generated code stays disabled
# description: Admitted words are values in policy/sandbox.yaml.
# custom:
#   code: generated_code_enabled
#   waivable: false
#   after: [bundle_missing]
#   field: bundle.sandbox.generated_code
#   facts: {generated_code: bundle.sandbox.generated_code}
#   remedy: Set sandbox.generated_code to disabled
#   reads: [sandbox.generated_code]
# labels:
#   row: A23
generated_code_disabled if input.bundle.sandbox.generated_code in data.policy.sandbox.generated_code

# METADATA
# title: Secrets are redacted
# description: Required by both the source bundle and policy/sandbox.yaml.
# custom:
#   code: redaction_off
#   fixed: true
#   after: [bundle_missing]
#   field: bundle.sandbox.redaction
#   remedy: Set sandbox.redaction to true
#   reads: [sandbox.redaction]
# labels:
#   row: A25
redaction_on if {
	data.policy.sandbox.redaction == true
	input.bundle.sandbox.redaction == true
}

# METADATA
# title: The sandbox network setting is admitted
# description: Admitted words are values in policy/sandbox.yaml.
# custom:
#   code: sandbox_network_open
#   waivable: false
#   after: [bundle_missing]
#   field: bundle.sandbox.network
#   facts: {network: bundle.sandbox.network}
#   remedy: Set sandbox.network to none
#   reads: [sandbox.network]
# labels:
#   row: A09
network_closed if input.bundle.sandbox.network in data.policy.sandbox.network
