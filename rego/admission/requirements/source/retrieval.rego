package admission.requirements.source.retrieval

import data.admission.lib.origin
import future.keywords.not

# METADATA
# title: Every external record states when it was retrieved, as a UTC time
# description: Offline records need no retrieval time.
# custom:
#   code: retrieval_time_missing
#   each: bundle.records
#   after: [record_kind_contradicted]
#   field: retrieved_at
#   remedy: Write retrieved_at as a UTC time such as 2026-11-02T09:30:00Z into the record
# labels:
#   row: A12
time_stated(record) if origin.offline(record)

time_stated(record) if {
	origin.external(record)
	is_number(record.retrieved_at)
	record.retrieved_at > 0
}

# METADATA
# title: Every external record was retrieved before now
# description: Compared with the engine's clock, without tolerance.
# custom:
#   code: retrieval_time_in_future
#   each: bundle.records
#   after: [retrieval_time_missing]
#   field: retrieved_at
#   facts: {retrieved_at: retrieved_at}
#   remedy: Correct retrieved_at, or the clock of the machine that retrieved the material
# labels:
#   row: A12
time_past(record) if origin.offline(record)

time_past(record) if {
	origin.external(record)
	is_number(input.now)
	is_number(record.retrieved_at)
	record.retrieved_at > 0
	record.retrieved_at <= input.now
}
