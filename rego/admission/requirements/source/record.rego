package admission.requirements.source.record

import data.admission.lib.origin
import future.keywords.not

# METADATA
# title: The id of every record is unique
# description: Decisions name records by id; two records with one id would share them.
# custom:
#   code: record_id_not_unique
#   each: bundle.records
#   field: id
#   remedy: Give the record a unique id
# labels:
#   row: A100
id_unique(record) if {
	is_string(record.id)
	record.id != ""
	record.id_count == 1
}

# METADATA
# title: The kind of every record is admitted
# description: Kinds are values in policy/sources.yaml, including the default for records without an origin.
# custom:
#   code: record_kind_not_admitted
#   each: bundle.records
#   field: kind
#   facts: {kind: kind}
#   remedy: State one of the kinds in policy/sources.yaml, such as `external` for material with an address, or ask
#     compliance to admit this one there
#   reads: [sources.kinds]
# labels:
#   row: A05
kind_admitted(record) if record.kind in data.policy.sources.kinds

# METADATA
# title: Records with an address are external, and all others have none
# description: Only external records must meet the network requirements, so a URL in a record of another kind is a
#   contradiction.
# custom:
#   code: record_kind_contradicted
#   each: bundle.records
#   after: [record_kind_not_admitted]
#   field: kind
#   facts: {kind: kind}
#   remedy: Set `kind` to external and state url and retrieved_at, or set url to null
# labels:
#   row: A05, A09
kind_consistent(record) if origin.offline(record)

kind_consistent(record) if origin.external(record)
