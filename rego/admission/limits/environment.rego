# What may be built: exactly these rows of exactly these records, with the tools of the environment.
package admission.limits.environment

import data.admission.lib.environment
import future.keywords.not

# METADATA
# custom:
#   proof: an incomplete record is dropped, and then the counts differ
limits := {
	"environment": input.environment,
	"holds": environment.row.holds,
	"bundle_digest": input.digest,
	"records": records,
	"rows": input.rows,
	"kept_until": min(kept),
	"tools": environment.row.tools,
	"text_bytes": environment.row.limits.text_bytes,
	"database_bytes": environment.row.limits.database_bytes,
	"checkpoints": environment.row.limits.checkpoints,
} if {
	is_string(input.environment)
	is_string(input.digest)
	is_number(input.rows)
	is_array(input.records)
	records := [{"id": record.id, "sha256": record.sha256, "rows": record.material.rows} |
		some record in input.records
		is_string(record.id)
		is_string(record.sha256)
		is_number(record.material.rows)
	]
	count(records) > 0
	count(records) == count(input.records)
	kept := [record.kept_until | some record in input.records; is_number(record.kept_until)]
	count(kept) == count(input.records)
}
