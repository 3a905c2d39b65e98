# Which command may run in its sandbox, and its limits.
package admission.limits.sandbox

import data.admission.lib.input_files
import data.admission.lib.sandbox
import future.keywords.not

# METADATA
# custom:
#   proof: every part is required; without one of them there are no limits
limits := object.union_n([
	sandbox.place(input.profile),
	sandbox.bounds(input.profile, "solution"),
	{"command": _command, "files": _files},
	_egress,
])

_command := {"kind": "none"} if input.command.stated == false

_command := {
	"kind": "argv",
	"path": _path,
	"digest": input.command.digest,
} if {
	input.command.stated == true
}

# METADATA
# custom:
#   proof: the files are complete, or there are no limits
_files := files if {
	described := input_files.described
	files := [{"path": file.id, "sha256": file.sha256} | some file in described]
}

_path := data.policy.sandbox.executables[input.command.executable] if input.command.text == false

_path := data.policy.sandbox.shells[input.profile] if input.command.text == true

# METADATA
# custom:
#   proof: a request that does not say whether it needs a way out has no limits
_egress := {"egress": null} if input.egress == false

_egress := {"egress": {
	"at_once": tunnels.at_once,
	"most": tunnels.most,
	"sent_bytes": tunnels.sent_bytes,
	"received_bytes": tunnels.received_bytes,
}} if {
	input.egress == true
	tunnels := data.policy.networks.tunnels
}
