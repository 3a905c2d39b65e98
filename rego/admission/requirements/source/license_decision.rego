package admission.requirements.source.license_decision

import data.admission.lib.license_decision
import future.keywords.not

# METADATA
# title: A license decision covers exactly the content of every record
# description: A decision that names another record or hash does not cover this one.
# custom:
#   code: license_decision_missing
#   each: bundle.records
#   after: [license_missing, content_hash_mismatch]
#   field: license.decisions
#   remedy: Have the license decided, and add the decision with the record's id and the hash of its content
#   reads: ["licenses.licenses.{license.alternatives}"]
# labels:
#   row: A18, A100
taken(record) if license_decision.present(record)

# METADATA
# title: Every record has exactly one complete license decision
# description: With two decisions on the same content, or an incomplete one, it is unclear which applies.
# custom:
#   code: license_decision_ambiguous
#   each: bundle.records
#   after: [license_decision_missing]
#   field: license.decisions
#   remedy: Keep the newest decision on this content, with its hash, outcome and time, and remove the others
# labels:
#   row: A15, A100
unambiguous(record) if license_decision.single(record)

# METADATA
# title: Every license decision was taken before now
# description: A decision dated in the future has not been taken.
# custom:
#   code: license_decision_in_future
#   each: bundle.records
#   after: [license_decision_ambiguous]
#   field: license.decisions
#   remedy: Correct decided_at, or wait until the decision has been taken
# labels:
#   row: A100
past(record) if license_decision.taken_by(record, input.now)
