# What an answer may contain: the converted fields of the contract in order, and the repeated fields of the request.
package admission.limits.code_output

import data.admission.lib.code_output
import future.keywords.not

# METADATA
# custom:
#   proof: a field that does not fit is left out, and then the counts differ
limits := {
	"contract": input.contract,
	"result": _result,
	"echoed": _echoed,
	"answer": code_output.contract.answer,
	"artifacts": _kept,
	"printed": _printed,
} if {
	input.run.status == "ok"
	count(input.run.exits) == 1
	input.run.exits[0].code == 0
	count(_result) == count(code_output.contract.fields)
	count(_fitting) == count(code_output.parts)
	count(_echoed) == count(code_output.contract.echoed)
}

_printed := [] if code_output.named

_printed := [input.output.sha256] if code_output.is_text

# METADATA
# custom:
#   proof: a field that does not fit is left out, and the count is compared with that of the contract
_result := [item |
	some expected in code_output.contract.fields
	some field in input.output.fields
	field.id == expected.name
	code_output.fits(field)
	item := _item(expected, field)
]

# METADATA
# custom:
#   proof: what does not fit is left out, and the count is compared with that of the contract
_fitting contains part.id if {
	some part in code_output.parts
	some field in input.output.fields
	field.id == part.id
	code_output.fits(field)
}

# METADATA
# custom:
#   proof: a field that the request does not state is left out, and the count is compared with that of the contract
_echoed := [{"name": row.name, "value": value} |
	some row in code_output.contract.echoed
	value := code_output.echoed(row.name)
]

# METADATA
# custom:
#   proof: a file that was not searched for secrets, or contains one, is left out and not kept
_kept := [file.id | some file in input.artifacts; code_output.keepable(file)]

_item(expected, field) := _number(expected, field, "rounded") if expected.type == "convertible"

_item(expected, field) := object.union(_number(expected, field, "rate"), {"percent": expected.percent}) if {
	expected.type == "number"
	is_object(expected.percent)
}

# METADATA
# custom:
#   proof: only a policy value can be missing, and then less is shown
_item(expected, field) := _number(expected, field, "number") if {
	expected.type == "number"
	not expected.percent
}

_item(expected, field) := {"name": expected.name, "kind": "integer", "value": field.number} if {
	expected.type == "integer"
}

_item(expected, field) := {"name": expected.name, "kind": "flag", "value": field.flag} if expected.type == "flag"

_item(expected, field) := _text(expected, code_output.chosen(expected, field)) if expected.type == "choice"

_item(expected, field) := _text(expected, code_output.repeated(field)) if expected.type == "request"

_item(expected, field) := _content(expected, field, []) if expected.type in {"list", "text"}

# METADATA
# custom:
#   proof: the columns are those of the contract
_item(expected, field) := _content(expected, field, [column.name | some column in expected.columns]) if {
	expected.type == "table"
}

_content(expected, field, columns) := {
	"name": expected.name,
	"kind": expected.type,
	"columns": columns,
	"content": field.content,
}

_number(expected, field, kind) := {
	"name": expected.name,
	"kind": kind,
	"value": field.number,
	"decimals": expected.decimals,
}

_text(expected, value) := {"name": expected.name, "kind": expected.type, "value": value}
