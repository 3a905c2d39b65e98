# Which bytes may be used for what, and the decisions under which they ran and were validated.
package admission.limits.artifact

import data.admission.lib.artifact
import future.keywords.not

limits := {
	"sha256": input.sha256,
	"kind": input.kind,
	"ran_in": artifact.passed("sandbox").ran_in,
	"sandbox_decision": artifact.passed("sandbox").decision_id,
	"validation_decision": artifact.passed("validation").decision_id,
}
