# The one act that may be done, and how long its result is valid.
package admission.limits.administration

import data.admission.lib.administration
import future.keywords.not

limits := {"act": input.act, "id": input.id, "seconds": _seconds} if {
	is_string(input.act)
	is_string(input.id)
}

_seconds := 0 if administration.gives_nothing

_seconds := 0 if input.act in {"stop", "approve_release"}

_seconds := input.scope.seconds if input.act == "issue_token"

_seconds := input.prefix.seconds if input.act == "approve_prefix"
