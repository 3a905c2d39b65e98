# Whose decisions may be read, and how much of the record one request may cost.
package admission.limits.record_read

import future.keywords.not

limits := {
	"whose": input.whose,
	"principal": _principal,
	"decisions": min([input.limit, data.policy.callers.read_page.decisions]),
	"bytes": data.policy.callers.read_page.bytes,
} if {
	is_number(input.limit)
	is_number(data.policy.callers.read_page.decisions)
}

_principal := "" if input.whose == "all"

_principal := input.caller.principal if input.whose == "own"
