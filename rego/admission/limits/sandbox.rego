# Which command may run in its sandbox, and its limits.
package admission.limits.sandbox

import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# custom:
#   proof: every part is required; without one of them there are no limits
limits := object.union_n([
	sandbox.place(input.profile),
	sandbox.bounds(input.profile, "solution"),
	{"command": _command},
])

_command := {"kind": "none"} if input.command.stated == false

_command := {
	"kind": "argv",
	"path": data.policy.sandbox.executables[input.command.executable],
	"digest": input.command.digest,
} if {
	input.command.stated == true
}
