package admission.requirements.source.network

import data.admission.lib.origin
import future.keywords.not

# METADATA
# title: Network access is enabled if a record needs it
# description: A fixture needs no network; an external record needs the bundle's network policy to enable it.
# custom:
#   code: network_access_disabled
#   each: bundle.records
#   after: [record_kind_contradicted]
#   field: bundle.network.enabled
#   remedy: Set network.enabled to true, or remove the record
# labels:
#   row: A19
access_enabled(record) if origin.offline(record)

access_enabled(record) if {
	origin.external(record)
	input.bundle.network.enabled == true
}

# METADATA
# title: The request budget covers every external record
# description: Each record that is external or has an address is one request.
# custom:
#   code: request_budget_exhausted
#   each: bundle.records
#   after: [record_kind_contradicted]
#   field: bundle.network.budget.max_requests
#   facts: {max_requests: bundle.network.budget.max_requests}
#   remedy: Raise network.budget.max_requests to the number of external records, or remove records
# labels:
#   row: A21
budget_left(record) if origin.offline(record)

budget_left(record) if {
	origin.external(record)
	is_number(record.requests_used)
	record.requests_used >= 0
	is_number(input.bundle.network.budget.max_requests)
	record.requests_used < input.bundle.network.budget.max_requests
}

# METADATA
# title: The network policy requires source events to be audited
# description: Required of every source bundle, even without network access.
# custom:
#   code: source_audit_off
#   fixed: true
#   after: [bundle_missing]
#   field: bundle.network.audit_required
#   remedy: Set network.audit_required to true
# labels:
#   row: A22
audited if input.bundle.network.audit_required == true
