package admission.requirements.code_output.fields

import data.admission.lib.code_output
import future.keywords.not

# METADATA
# title: Every field of the output fits its contract
# description: Type, bounds and choices are values of the contract in policy/code.yaml; fields of type request are
#   compared with the request. If several fields do not fit, the first one in the order of the contract is
#   reported.
# custom:
#   code: "invalid_code_output"
#   each: output.fields
#   empty: allowed
#   after: ["invalid_request:carried_field"]
#   proof: a field is skipped only if an earlier one in the strict order of the contract does not fit, and
#     that one is refused; a program that failed is refused by code_runtime_error
#   remedy: Correct the field. Its type and bounds are in policy/code.yaml, and a field of type request repeats the
#     request. If a verifier printed that `passed` is false, correct the program that it verifies
#   reads: ["code.contracts.{contract}.fields"]
# labels:
#   row: C39, C40, C41, C42, C56, C57, C73, H02, H18, H20
as_agreed(field) if code_output.fits(field)

as_agreed(field) if {
	is_string(field.id)
	code_output.failed
}

as_agreed(field) if {
	some earlier in input.output.fields
	not code_output.fits(earlier)
	code_output.position(earlier.id) < code_output.position(field.id)
}

# METADATA
# title: The request states the fields that the answer repeats
# description: Printable text of at most 200 characters. Which fields are repeated is a value of the contract in
#   policy/code.yaml. A value of the output that does not fit in any case is reported first.
# custom:
#   code: "invalid_request:carried_field"
#   after: ["invalid_code_output:missing_required"]
#   proof: a contract that repeats nothing states an empty list; the other definitions hold only if another
#     requirement refuses the failed program or the field that does not fit
#   remedy: State under `request` the fields that the contract lists under `echoed` in policy/code.yaml
#   reads: ["code.contracts.{contract}.echoed"]
# labels:
#   row: C82, H18
echoed if {
	is_array(code_output.contract.echoed)
	every row in code_output.contract.echoed { is_string(code_output.echoed(row.name)) }
}

echoed if code_output.failed

echoed if {
	some field in input.output.fields
	not code_output.fits(field)
	not code_output.unstated(field)
}
