# Where a code action would run, what is left of its time, and its contract without its entry point.
package admission.lib.code_execution

import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# description: The profile in which the language of the action runs.
usual := found if {
	found := data.policy.code.execution[input.action.language.value]
	is_string(found)
}

# METADATA
# description: The profile of this run, the stated one before that of the language.
profile := usual if input.profile.stated == false

profile := input.profile.value if {
	input.profile.stated == true
	is_string(input.profile.value)
}

# METADATA
# description: Seconds of the whole run that are left.
remaining_seconds := data.policy.code.max_seconds - (input.elapsed_ms / 1000)

# METADATA
# description: Whether the action is one at all, its entry point aside.
contract_holds if {
	code_contract.is_action
	code_contract.id_stated
	code_contract.language_stated
	code_contract.entrypoint_stated
	code_contract.code_stated
	code_contract.code_short_enough
	code_contract.payload_is_object
	code_contract.nothing_further
}

# METADATA
# description: Whether the entry point is one that may run.
entrypoint_admitted if {
	code_contract.entrypoint_is_name
	code_contract.entrypoint_admitted
}
