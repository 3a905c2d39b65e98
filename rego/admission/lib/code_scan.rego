# What the text of generated code may hold: the facts of a scan against the lists of policy/code.yaml.
package admission.lib.code_scan

import future.keywords.not

# The lists for the language of the code.
rules := data.policy.code.scan[input.scan.language]

# Every requirement on a scan holds; for points that run code and do not explain it.
clean if {
	language_scanned
	complete
	parsed
	_all_hold
	no_web_address
	input_read_within
}

language_scanned if is_object(rules)

complete if input.scan.complete == true

parsed if input.scan.parsed == true

import_allowed(found) if {
	found.kind == "module"
	is_array(rules.modules[found.id])
}

member_allowed(found) if {
	is_string(found.id)
	found.name in rules.modules[found.module]
}

member_allowed(found) if found.top in _refused_modules

module_plain(found) if {
	is_string(found.id)
	found.as_value == false
}

module_plain(found) if found.top in _refused_modules

call_allowed(call) if {
	_named(call)
	_callable_name(call)
	_callable_attribute(call)
}

attribute_allowed(found) if {
	_named(found)
	found.dunder == false
	_absent(found.id, "denied_attributes")
}

name_allowed(found) if {
	_named(found)
	found.dunder == false
	_admitted_variable(found)
	_admitted_value(found)
}

literal_allowed(kind) if kind.id in rules.literals

computed_allowed(kind) if kind.id in rules.computed

encoding_allowed(kind) if kind.id in rules.encodings

no_web_address if input.scan.network_literals == 0

input_read_within if {
	is_number(input.scan.input_calls)
	is_number(rules.input_reads)
	input.scan.input_calls <= rules.input_reads
	input.scan.input_values == 0
}

# METADATA
# description: Modules whose import is refused; what is done with them needs no words of its own.
# custom:
#   proof: whatever is in this set is in the list of imports and has no row, and is refused there
_refused_modules := {found.id | some found in input.scan.imports; is_string(found.id)} - _admitted_modules

# METADATA
# custom:
#   proof: a module that is missing here is refused
_admitted_modules contains name if {
	some name, members in rules.modules
	is_array(members)
}

_named(found) if {
	is_string(found.id)
	found.id != ""
}

# METADATA
# description: The lists that deny, as sets; one that is missing in policy/code.yaml is none of them.
# custom:
#   proof: what is missing here is no set, and nothing is absent from it
_denied[list] := {name | some name in rules[list]} if {
	some list in {"denied_calls", "denied_names", "denied_attributes"}
	is_array(rules[list])
}

# METADATA
# custom:
#   proof: both are there and of their types; a list that denies nothing denies nothing
_absent(name, list) if {
	is_string(name)
	count({name} & _denied[list]) == 0
}

_callable_name(call) if call.by_name == false

_callable_name(call) if {
	call.builtin == false
	_absent(call.id, "denied_calls")
}

# METADATA
# custom:
#   proof: a denied name is refused where it stands, so that the call need not be refused again
_callable_name(call) if {
	call.id in rules.builtins
	_absent(call.id, "denied_calls")
}

# Refused by its name alone, which says the same.
_callable_name(call) if {
	call.id in rules.denied_names
	_absent(call.id, "denied_calls")
	some found in input.scan.names
	found.id == call.id
	found.variable == true
}

_callable_attribute(call) if call.by_attribute == false

_callable_attribute(call) if _absent(call.id, "denied_attributes")

_admitted_variable(found) if found.variable == false

_admitted_variable(found) if _absent(found.id, "denied_names")

# What is only called is held to the rules of calls.
_admitted_value(found) if found.as_value == false

_admitted_value(found) if found.builtin == false

_admitted_value(found) if found.id in rules.builtins

# METADATA
# custom:
#   proof: each list is there; code in which nothing of a kind occurs has an empty one
_all_hold if {
	every name in _lists { is_array(input.scan[name]) }
	every found in input.scan.imports { import_allowed(found) }
	every found in input.scan.members { member_allowed(found) }
	every found in input.scan.modules { module_plain(found) }
	every found in input.scan.calls { call_allowed(found) }
	every found in input.scan.attributes { attribute_allowed(found) }
	every found in input.scan.names { name_allowed(found) }
	every found in input.scan.literals { literal_allowed(found) }
	every found in input.scan.computed { computed_allowed(found) }
	every found in input.scan.encodings { encoding_allowed(found) }
}

_lists := ["imports", "members", "modules", "calls", "attributes", "names", "literals", "computed", "encodings"]
