# Where a code action would run, how much time it has left, and its contract without the entry point.
package admission.lib.code_execution

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# description: The profile in which the language of the action runs.
default_profile := profile if {
	profile := data.policy.code.execution[input.action.language.value]
	is_string(profile)
}

# METADATA
# description: The requested profile, else that of the language.
profile := default_profile if input.profile.stated == false

profile := input.profile.value if {
	input.profile.stated == true
	is_string(input.profile.value)
}

# METADATA
# description: Seconds left of the whole run.
remaining_seconds := data.policy.code.max_seconds - (input.elapsed_ms / 1000)

# METADATA
# description: Whether the action meets its contract, except for the entry point.
contract_holds if {
	code_contract.is_action
	code_contract.id_stated
	code_contract.language_stated
	code_contract.entrypoint_stated
	code_contract.code_stated
	code_contract.code_short_enough
	code_contract.payload_is_object
	code_contract.no_unknown_fields
}

# METADATA
# description: Whether the entry point is admitted.
entrypoint_admitted if {
	code_contract.entrypoint_is_name
	code_contract.entrypoint_admitted
}
