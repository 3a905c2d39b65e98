# Where a code action would run, how much time it has left, and its contract without the entry point.
package admission.lib.code_execution

import data.admission.lib.boundary
import data.admission.lib.code_contract
import future.keywords.not

# METADATA
# description: The profile of the named package environment, else the one in which the language of the action runs.
default_profile := profile if {
	input.packages.stated == false
	profile := data.policy.code.execution[input.action.language.value]
	is_string(profile)
}

default_profile := profile if {
	input.packages.stated == true
	profile := data.policy.sandbox.packages[input.packages.value].profile
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
# description: The limits of both output streams, in bytes. A contract may have its own.
streams := data.policy.code if input.contract.stated == false

# METADATA
# custom:
#   proof: a contract without limits of its own has the general ones; the model demands those that it needs
streams := data.policy.code if {
	input.contract.stated == true
	is_array(data.policy.code.contracts[input.contract.value].fields)
	count(data.policy.code.contracts[input.contract.value].fields) > 0
	not data.policy.code.contracts[input.contract.value].streams
}

streams := data.policy.code.contracts[input.contract.value].streams if input.contract.stated == true

streams := _text if {
	input.contract.stated == true
	is_object(_text)
}

# METADATA
# description: Whether the output is text, which may be shown as it comes.
live if {
	input.contract.stated == true
	is_object(_text)
}

# METADATA
# description: Whether findings of the scan are binding in the profile.
scan := data.policy.sandbox.profiles[profile].scan

# METADATA
# description: Whether every boundary of the profile is proven on this machine.
contained if {
	count(boundary.names) > 0
	every name in boundary.names { boundary.proven(profile, name) }
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

_text := data.policy.code.contracts[input.contract.value].text
