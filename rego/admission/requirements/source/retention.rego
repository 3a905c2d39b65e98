package admission.requirements.source.retention

import future.keywords.not

# METADATA
# title: Every record states how long and on which basis it may be kept
# description: Both the last day and the basis are required.
# custom:
#   code: retention_missing
#   each: bundle.records
#   field: retention
#   remedy: Add `retention` with the last day (`until`) and the legal basis (`basis`)
# labels:
#   row: A13
stated(record) if {
	is_string(record.retention.basis)
	is_number(record.retention.until)
}

# METADATA
# title: The basis for keeping every record is admitted
# description: Admitted bases are values in policy/sources.yaml.
# custom:
#   code: retention_unknown
#   each: bundle.records
#   after: [retention_missing]
#   field: retention.basis
#   facts: {basis: retention.basis}
#   remedy: State the true basis if policy/sources.yaml lists it, or ask compliance to add it there
#   reads: [sources.retention_bases]
# labels:
#   row: A13
basis_admitted(record) if record.retention.basis in data.policy.sources.retention_bases

# METADATA
# title: Every record may still be kept
# description: The stated day ends at midnight UTC.
# custom:
#   code: retention_expired
#   each: bundle.records
#   after: [retention_missing]
#   field: retention.until
#   facts: {until: retention.until}
#   remedy: Delete the material, or agree on a later day and state it
# labels:
#   row: A13
kept(record) if {
	is_number(input.now)
	input.now > 0
	is_number(record.retention.until)
	record.retention.until >= input.now
}
