# The proposed action and its limits.
package admission.limits.code_action

import data.admission.lib.code
import data.admission.lib.code_contract
import future.keywords.not

limits := {
	"id": input.action.id.value,
	"language": input.action.language.value,
	"entrypoint": input.action.entrypoint.value,
	"code_sha256": input.action.code.sha256,
	"code_hash": input.action.code.hash,
	"chars": input.action.code.chars,
	"max_code_chars": code.max_code_chars,
	"exec_timeout_seconds": code.exec_timeout_seconds,
	"max_seconds": data.policy.code.max_seconds,
	"allowed_languages_policy": code.languages,
	"allowed_languages_execution": code.execution_languages,
} if {
	code_contract.holds
}
