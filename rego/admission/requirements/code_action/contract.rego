package admission.requirements.code_action.contract

import future.keywords.not

# METADATA
# title: The output contract is known
# description: Contracts are rows in policy/code.yaml. A request that states none is not checked here.
# custom:
#   code: "invalid_request:contract_unknown"
#   remedy: Name a contract that is in policy/code.yaml
#   reads: [code.contracts]
#   after: ["invalid_action:unknown_field"]
# labels:
#   row: C38, C76
contract_known if input.contract.stated == false

contract_known if {
	input.contract.stated == true
	is_object(data.policy.code.contracts[input.contract.value])
}

# METADATA
# title: The request states the fields that the answer repeats
# description: Printable text of at most 200 characters; checked before anything runs. Which fields are repeated is a
#   value of the contract in policy/code.yaml.
# custom:
#   code: "invalid_request:carried_field"
#   remedy: State under `request` the fields that the contract lists under `echoed` in policy/code.yaml, or name a
#     contract that repeats none, such as `printed`
#   reads: ["code.contracts.{contract.value}.echoed"]
#   after: ["invalid_request:contract_unknown"]
#   proof: a contract that repeats nothing states an empty list
# labels:
#   row: C76, C82, H18
repeated_stated if {
	is_array(input.echoed)
	input.contract.stated == false
}

repeated_stated if {
	rows := data.policy.code.contracts[input.contract.value].echoed
	is_array(rows)
	every row in rows { is_string(_repeated(row.name)) }
}

# METADATA
# custom:
#   proof: only the field of this name counts; names are unique in a request
_repeated(name) := entry.text if {
	some entry in input.echoed
	entry.id == name
}
