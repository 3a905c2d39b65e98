# What may be recorded, and how long it must be kept.
package admission.limits.record

import future.keywords.not

limits := {"detail": input.detail, "retention_days": input.retention_days} if {
	is_string(input.detail)
	is_number(input.retention_days)
}
