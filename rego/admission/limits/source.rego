# What environment construction may use: exactly these records, for this purpose, in this sandbox.
package admission.limits.source

import data.admission.lib.origin
import future.keywords.not

# METADATA
# custom:
#   proof: a host that is not in both lists is left out; an incomplete record is dropped, and then the
#     counts differ
limits := {
	"purpose": input.bundle.purpose,
	"environment": input.bundle.environment,
	"bundle_digest": input.bundle.digest,
	"records": records,
	"export": {"allowed": input.bundle.exported},
	"network": {
		"enabled": input.bundle.network.enabled,
		"allowed_hosts": allowed_hosts,
		"max_requests": input.bundle.network.budget.max_requests,
	},
	"sandbox": {
		"generated_code": input.bundle.sandbox.generated_code,
		"filesystem": input.bundle.sandbox.filesystem,
		"redaction": input.bundle.sandbox.redaction,
		"network": input.bundle.sandbox.network,
	},
	"audit": input.bundle.network.audit_required,
} if {
	is_string(input.bundle.environment)
	is_string(input.bundle.digest)
	is_boolean(input.bundle.exported)
	is_boolean(input.bundle.network.enabled)
	is_array(input.bundle.network.allowed_hosts)
	is_array(data.policy.networks.hosts)
	allowed_hosts := [host | some host in input.bundle.network.allowed_hosts; origin.listed(host)]
	is_number(input.bundle.network.budget.max_requests)
	is_array(input.bundle.records)
	records := [{"id": record.id, "sha256": record.content.sha256, "bytes": record.content.bytes} |
		some record in input.bundle.records
		is_string(record.id)
		is_string(record.content.sha256)
		is_number(record.content.bytes)
	]
	count(records) > 0
	count(records) == count(input.bundle.records)
}
