# What the output of a program is, under its contract in policy/code.yaml.
package admission.lib.code_output

import future.keywords.not

contract := data.policy.code.contracts[input.contract]

# The sandbox ended the program itself.
stopped if input.run.status in {"output_limit", "timeout_cpu", "timeout_wall"}

# The program ended, one way or another.
ended if input.run.status in {"forbidden_syscall", "ok", "oom", "runtime_error", "signal"}

# A program that ended badly is refused for that, whatever it printed.
# METADATA
# custom:
#   proof: a program with one bad end is refused by a requirement of its own, so the others need not refuse it again
failed if {
	some exit in input.run.exits
	is_number(exit.code)
	exit.code != 0
}

# Exactly the fields of the contract are facts.
# METADATA
# custom:
#   proof: a name that is missing on either side is left out of one list alone, and then the two differ
named if {
	names := [wanted.name | some wanted in contract.fields]
	count(names) > 0
	count(names) == count(contract.fields)
	names == [field.id | some field in input.output.fields]
}

# A field is there and is what the contract says.
fits(field) if {
	field.present == true
	some wanted in contract.fields
	wanted.name == field.id
	_is(wanted, field)
}

_is(wanted, field) if {
	wanted.type == "number"
	field.kind in {"integer", "number"}
	_within(wanted, field.number)
}

_is(wanted, field) if {
	wanted.type == "integer"
	field.kind == "integer"
	_within(wanted, field.number)
}

_is(wanted, field) if {
	wanted.type == "convertible"
	field.kind in {"integer", "number", "text"}
	_within(wanted, field.number)
}

_is(wanted, field) if {
	wanted.type == "choice"
	is_string(chosen(wanted, field))
}

_is(wanted, field) if {
	wanted.type == "flag"
	field.kind == "boolean"
	is_boolean(field.flag)
	field.flag == wanted.must_be
}

_is(wanted, field) if {
	wanted.type == "request"
	is_string(repeated(field))
}

_within(wanted, number) if {
	is_number(number)
	_above(number, wanted.minimum)
	_below(number, wanted.maximum)
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

# The text of the policy that a field says.
chosen(wanted, field) := option if {
	field.kind == "text"
	some option in wanted.one_of
	crypto.sha256(option) == field.sha256
}

# The text of the request that a field says too.
repeated(field) := text if {
	field.kind in {"integer", "text"}
	text := carried(field.id)
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
#   proof: the field of this name is asked for, and a request has one of each name
carried(name) := one.text if {
	_case(name) == "as_is"
	some one in input.carried
	one.id == name
	is_string(one.text)
}

carried(name) := one.upper if {
	_case(name) == "upper"
	some one in input.carried
	one.id == name
	is_string(one.upper)
}

_case(name) := row.case if {
	some row in contract.carried
	row.name == name
}

# Where a field stands in the order of the contract; strict, so of several fields one is the first.
# METADATA
# custom:
#   proof: the least of no positions is undefined, so a field that the contract does not name has none
position(id) := min({index | some index, wanted in contract.fields; wanted.name == id}) if is_string(id)

# A file that was looked through, for the secrets that the policy knows, and in which none was seen.
keepable(file) if {
	is_string(file.id)
	file.secret == false
	count(data.policy.secrets.forms) > 0
}
