package admission.requirements.license.license_decision

import data.admission.lib.license_decision
import future.keywords.not

# METADATA
# title: A license decision covers exactly this content
# description: A decision that names another hash does not cover this content.
# custom:
#   code: license_decision_missing
#   after: [license_missing]
#   proof: one decision on exactly this content is enough; another requirement checks that there is no second one
#   remedy: Have the license decided, and state the decision with the hash of the content
#   reads: ["licenses.licenses.{license.alternatives}"]
# labels:
#   row: A18, A100
taken if license_decision.present(input)

# METADATA
# title: There is exactly one complete license decision
# description: With two decisions on the same content, or an incomplete one, it is unclear which applies.
# custom:
#   code: license_decision_ambiguous
#   after: [license_decision_missing]
#   remedy: Keep the newest decision on this content, with its hash, outcome and time, and remove the others
# labels:
#   row: A15, A100
unambiguous if license_decision.single(input)

# METADATA
# title: The license decision was taken before now
# description: A decision dated in the future has not been taken.
# custom:
#   code: license_decision_in_future
#   after: [license_decision_ambiguous]
#   remedy: Correct decided_at, or wait until the decision has been taken
# labels:
#   row: A100
past if license_decision.taken_by(input, input.now)
