# What may be said of a run: the fields of the contract, in its order and converted, and what the answer repeats.
package admission.limits.code_output

import data.admission.lib.code_output
import future.keywords.not

# METADATA
# custom:
#   proof: what does not fit is left out of a comprehension, and then the counts differ
limits := {
	"contract": input.contract,
	"result": _result,
	"carried": _carried,
	"answer": code_output.contract.answer,
	"artifacts": _kept,
} if {
	input.run.status == "ok"
	count(input.run.exits) == 1
	input.run.exits[0].code == 0
	code_output.named
	count(_result) == count(code_output.contract.fields)
	count(_carried) == count(code_output.contract.carried)
}

# METADATA
# custom:
#   proof: what does not fit is left out, and limits compare the count with that of the contract
_result := [item |
	some wanted in code_output.contract.fields
	some field in input.output.fields
	field.id == wanted.name
	code_output.fits(field)
	item := _item(wanted, field)
]

# METADATA
# custom:
#   proof: what the request does not state is left out, and limits compare the count with that of the contract
_carried := [{"name": row.name, "value": value} |
	some row in code_output.contract.carried
	value := code_output.carried(row.name)
]

# METADATA
# custom:
#   proof: a file that is not seen to be free of secrets is left out, and then no byte of it is kept
_kept := [file.id | some file in input.artifacts; code_output.keepable(file)]

_item(wanted, field) := _number(wanted, field, "rounded") if wanted.type == "convertible"

_item(wanted, field) := object.union(_number(wanted, field, "rate"), {"percent": wanted.percent}) if {
	wanted.type == "number"
	is_object(wanted.percent)
}

# METADATA
# custom:
#   proof: what is not there is a value of the policy; without it less is shown
_item(wanted, field) := _number(wanted, field, "number") if {
	wanted.type == "number"
	not wanted.percent
}

_item(wanted, field) := {"name": wanted.name, "kind": "integer", "value": field.number} if wanted.type == "integer"

_item(wanted, field) := {"name": wanted.name, "kind": "flag", "value": field.flag} if wanted.type == "flag"

_item(wanted, field) := _text(wanted, code_output.chosen(wanted, field)) if wanted.type == "choice"

_item(wanted, field) := _text(wanted, code_output.repeated(field)) if wanted.type == "request"

_number(wanted, field, kind) := {
	"name": wanted.name,
	"kind": kind,
	"value": field.number,
	"decimals": wanted.decimals,
}

_text(wanted, value) := {"name": wanted.name, "kind": wanted.type, "value": value}
