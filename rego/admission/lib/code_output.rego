# Whether the output of a program meets its contract in policy/code.yaml.
package admission.lib.code_output

import future.keywords.not

contract := data.policy.code.contracts[input.contract]

# The output is text, which has no fields.
is_text if is_object(contract.text)

# The limits of both output streams, in bytes.
streams := contract.text if is_text

streams := contract.streams if count(contract.fields) > 0

# METADATA
# custom:
#   proof: a contract without limits of its own has the general ones; the model demands those that it needs
streams := data.policy.code if {
	is_array(contract.fields)
	count(contract.fields) > 0
	not contract.streams
}

# What facts are about, in order: each field, and after a list its values, after a table its columns.
# METADATA
# custom:
#   proof: only what the contract states is in the list, and the facts are compared with it
parts := [part | some expected in contract.fields; some part in _parts(expected)]

# METADATA
# custom:
#   proof: the columns are those of the contract
_parts(expected) := array.concat(
	[{"id": expected.name, "expected": expected, "column": false}],
	[part | some part in _columns(expected)],
)

# A field that is no list and no table has none.
_columns(expected) := [{"id": sprintf("%s.items", [expected.name]), "expected": expected.items, "column": true}] if {
	expected.type == "list"
}

# METADATA
# custom:
#   proof: the columns are those of the contract
_columns(expected) := [part |
	some column in expected.columns
	part := {"id": sprintf("%s.%s", [expected.name, column.name]), "expected": column, "column": true}
] if {
	expected.type == "table"
}

# The sandbox killed the program.
stopped if input.run.status in {"output_limit", "timeout_cpu", "timeout_wall"}

# The program ended, in whatever way.
ended if input.run.status in {"forbidden_syscall", "ok", "oom", "runtime_error", "signal"}

# The program failed; it is refused for that, whatever it printed.
# METADATA
# custom:
#   proof: each kind of failure has its own requirement, so other requirements need not refuse it again
failed if {
	some exit in input.run.exits
	is_number(exit.code)
	exit.code != 0
}

# The facts have exactly the fields of the contract.
# METADATA
# custom:
#   proof: a name that is missing on one side makes the two lists differ
named if {
	names := [part.id | some part in parts]
	count(names) >= count(contract.fields)
	count(names) > 0
	names == [field.id | some field in input.output.fields]
}

# A field is present and meets the contract.
fits(field) if {
	field.present == true
	some part in parts
	part.id == field.id
	_fits(part, field)
}

_fits(part, field) if {
	part.column == false
	_matches(part.expected, field)
}

_fits(part, field) if {
	part.column == true
	column_fits(part.expected, field.column)
}

_matches(expected, field) if {
	expected.type == "text"
	field.kind == "text"
	_below(field.characters, expected.characters)
	is_string(field.content)
}

_matches(expected, field) if {
	expected.type == "list"
	_counted(expected, field)
}

_matches(expected, field) if {
	expected.type == "table"
	_counted(expected, field)
	field.rows == field.entries
}

_matches(expected, field) if {
	expected.type == "number"
	field.kind in {"integer", "number"}
	_within(expected, field.number)
}

_matches(expected, field) if {
	expected.type == "integer"
	field.kind == "integer"
	_within(expected, field.number)
}

_matches(expected, field) if {
	expected.type == "convertible"
	field.kind in {"integer", "number", "text"}
	_within(expected, field.number)
}

_matches(expected, field) if {
	expected.type == "choice"
	is_string(chosen(expected, field))
}

_matches(expected, field) if {
	expected.type == "flag"
	field.kind == "boolean"
	is_boolean(field.flag)
	field.flag == expected.must_be
}

_matches(expected, field) if {
	expected.type == "request"
	is_string(repeated(field))
}

_counted(expected, field) if {
	field.kind == "list"
	_above(field.entries, expected.least)
	_below(field.entries, expected.most)
	is_string(field.content)
}

# Every value of a list or column is what the contract states.
column_fits(expected, column) if {
	expected.type == "number"
	_there(expected, column)
	column.numbers == column.values
	_between(expected, column)
}

column_fits(expected, column) if {
	expected.type == "integer"
	_there(expected, column)
	column.integers == column.values
	_between(expected, column)
}

column_fits(expected, column) if {
	expected.type == "boolean"
	_there(expected, column)
	column.booleans == column.values
}

column_fits(expected, column) if {
	expected.type == "text"
	_there(expected, column)
	column.strings == column.values
	_below(column.longest, expected.characters)
}

# METADATA
# custom:
#   proof: a text that is no option of the policy makes the counts differ
column_fits(expected, column) if {
	expected.type == "choice"
	_there(expected, column)
	column.strings == column.values
	is_array(column.texts)
	known := {digest | some digest in column.texts; some option in expected.one_of; crypto.sha256(option) == digest}
	count(known) == count(column.texts)
}

_there(expected, column) if {
	is_number(column.values)
	is_number(column.missing)
	_missing(expected, column.missing)
}

_missing(_, 0)

_missing(expected, _) if expected.optional == true

_between(_, column) if column.values == 0

_between(expected, column) if {
	_within(expected, column.least)
	_within(expected, column.most)
}

_within(expected, number) if {
	is_number(number)
	_above(number, expected.minimum)
	_below(number, expected.maximum)
}

_above(_, "any")

_above(number, least) if {
	is_number(number)
	is_number(least)
	number >= least
}

_below(_, "any")

_below(number, most) if {
	is_number(number)
	is_number(most)
	number <= most
}

# The field equals a text of the policy.
chosen(expected, field) := option if {
	field.kind == "text"
	some option in expected.one_of
	crypto.sha256(option) == field.sha256
}

# The field equals the request's field.
repeated(field) := text if {
	field.kind in {"integer", "text"}
	text := echoed(field.id)
	_same(field, text)
}

_same(field, text) if {
	_case(field.id) == "as_is"
	crypto.sha256(text) == field.sha256
}

_same(field, text) if {
	_case(field.id) == "upper"
	crypto.sha256(text) == field.upper_sha256
}

# A field of the request as the answer repeats it.
# METADATA
# custom:
#   proof: only the field of this name counts; names are unique in a request
echoed(name) := entry.text if {
	_case(name) == "as_is"
	some entry in input.echoed
	entry.id == name
	is_string(entry.text)
}

echoed(name) := entry.upper if {
	_case(name) == "upper"
	some entry in input.echoed
	entry.id == name
	is_string(entry.upper)
}

# The field must equal one that the request does not state.
# METADATA
# custom:
#   proof: it only chooses the finding; a field that is not stated does not fit in any case
unstated(field) if {
	some part in parts
	part.id == field.id
	part.expected.type == "request"
	not is_string(echoed(field.id))
}

_case(name) := row.case if {
	some row in contract.echoed
	row.name == name
}

# The position of a field in the order of the contract; strict, so exactly one field is the first.
# METADATA
# custom:
#   proof: the minimum of no positions is undefined, so a field that is not in the contract has none
position(id) := min({index | some index, part in parts; part.id == id}) if is_string(id)

# A file that was searched for all secret formats of the policy and contains none.
keepable(file) if {
	is_string(file.id)
	file.secret == false
	count(data.policy.secrets.forms) > 0
}
