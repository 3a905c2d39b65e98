package admission.requirements.sandbox.egress

import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# title: A request that needs egress names a profile with egress
# description: Egress goes through a listener in the sandbox that the engine serves. Each connection through it is
#   decided on at point `network`; every other one fails in the kernel.
# custom:
#   code: egress_unsupported
#   remedy: Name a profile whose backend has `egress` in policy/sandbox.yaml, or leave out `egress` and hosts
#   reads: ["sandbox.profiles.{profile}.backend", sandbox.backends]
#   after: [profile_unknown]
# labels:
#   row: C60, D08
#   threat: ACE
provided if input.egress == false

provided if {
	input.egress == true
	sandbox.egress(input.profile) == true
}
