# How a result may be shown: its size, the size of all results in a prompt, what is taken out of it, and the details of
# an error.
package admission.limits.tool_result

import data.admission.lib.tool_result
import future.keywords.not

limits := {
	"max_bytes": data.policy.tools.limits.result_bytes,
	"prompt_bytes": data.policy.tools.limits.prompt_bytes,
	"redact_secrets": tool_result.taken_out("secrets"),
	"redact_hidden": tool_result.taken_out("hidden_characters"),
	"redact_links": tool_result.carriers,
	"error_mode": input.error_mode,
	"show_message": _show_message,
	"record_side_effect": true,
} if {
	input.error_mode in {"safe", "debug"}
}

_show_message := false if input.status == "ok"

_show_message if {
	input.status == "error"
	input.error.kind == "validation"
}

_show_message if {
	input.status == "error"
	input.error_mode == "debug"
	input.error.kind in {"validation", "other"}
}

_show_message := false if {
	input.status == "error"
	input.error_mode == "safe"
	input.error.kind == "other"
}
