package admission.requirements.code_output.fields

import data.admission.lib.code_output
import future.keywords.not

# METADATA
# title: Every field of the output fits its contract
# description: Type, bounds and choices are values of the contract in policy/code.yaml; what has to be as in the
#   request is compared with the request. If several fields do not fit, the first in the order of the contract is
#   reported.
# custom:
#   code: "invalid_code_output"
#   each: output.fields
#   empty: allowed
#   after:
#     - "invalid_request:contract_unknown"
#     - "code_run_incomplete"
#     - "code_timeout"
#     - "code_output_too_large"
#     - "code_stderr_too_large"
#     - "invalid_code_output:empty_stdout"
#     - "invalid_code_output:non_json"
#     - "invalid_code_output:not_object"
#     - "invalid_code_output:missing_required"
#   proof: the field that is passed over comes after one that does not fit, in the strict order of the
#     contract, and the first that does not fit is refused; so is a program that ended badly, by
#     code_runtime_error
#   remedy: Correct the computation
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
# description: Text of at most 200 characters that can be printed. Which fields are repeated is a value of the
#   contract in policy/code.yaml.
# custom:
#   code: "invalid_request:carried_field"
#   after:
#     - "invalid_request:contract_unknown"
#     - "code_run_incomplete"
#     - "code_timeout"
#     - "code_output_too_large"
#     - "code_stderr_too_large"
#     - "invalid_code_output:empty_stdout"
#     - "invalid_code_output:non_json"
#     - "invalid_code_output:not_object"
#     - "invalid_code_output:missing_required"
#   proof: a contract that carries nothing says so by an empty list; the other definitions hold only where a
#     program that ended badly, or a field that does not fit, is refused by its own requirement
#   remedy: State the fields that are listed as carried
#   reads: ["code.contracts.{contract}.carried"]
# labels:
#   row: C82, H18
carried if {
	is_array(code_output.contract.carried)
	every row in code_output.contract.carried { is_string(code_output.carried(row.name)) }
}

carried if code_output.failed

carried if {
	some field in input.output.fields
	not code_output.fits(field)
}
