package admission.requirements.code_output.text

import data.admission.lib.code_output
import future.keywords.not

# METADATA
# title: The output is not empty
# description: White space counts as empty. Where the output is text, a program may print nothing and leave files.
# custom:
#   code: "invalid_code_output:empty_stdout"
#   after: [code_stderr_too_large]
#   remedy: Print the result as one JSON object
# labels:
#   row: C37
printed if input.output.blank == false

printed if code_output.failed

printed if code_output.is_text

# METADATA
# title: The output is one JSON value
# description: Without NaN, infinity, duplicate keys or excessive nesting.
# custom:
#   code: "invalid_code_output:non_json"
#   after: ["invalid_code_output:empty_stdout"]
#   remedy: Print the result with json.dumps, once, and nothing else
# labels:
#   row: C37, H02, H18
is_json if input.output.parsed == true

is_json if code_output.failed

is_json if code_output.is_text

# METADATA
# title: The output is a JSON object
# description: A list or a number has no fields.
# custom:
#   code: "invalid_code_output:not_object"
#   after: ["invalid_code_output:non_json"]
#   remedy: Print an object with the fields of the contract
# labels:
#   row: C37
is_an_object if input.output.object == true

is_an_object if code_output.failed

is_an_object if code_output.is_text

# METADATA
# title: The output has every field of its contract
# description: Contracts are in policy/code.yaml. Other fields are dropped.
# custom:
#   code: "invalid_code_output:missing_required"
#   after: ["invalid_code_output:not_object"]
#   remedy: Print all fields that the contract lists in policy/code.yaml
#   reads: ["code.contracts.{contract}.fields"]
# labels:
#   row: C38, C74
complete if {
	code_output.named
	count(input.output.fields) > 0
	every field in input.output.fields { field.present == true }
}

complete if code_output.failed

complete if code_output.is_text
