# What generated code may contain: the facts of a scan, compared with the lists of policy/code.yaml.
package admission.lib.code_scan

import future.keywords.not

# The lists for the language of the code.
rules := data.policy.code.scan[input.scan.language]

# All requirements on a scan hold; for points that run code and do not explain the scan.
clean if {
	language_scanned
	complete
	parsed
	_all_hold
	no_web_address
	input_read_within
}

# METADATA
# description: All of the code was scanned; its findings are reported and refuse nothing.
# custom:
#   proof: each list is present, and its items are named; it is empty if the code has nothing of that kind
readable if {
	language_scanned
	complete
	parsed
	every name in ["input_calls", "input_values", "network_literals"] { is_number(input.scan[name]) }
	every name in _lists {
		is_array(input.scan[name])
		every item in input.scan[name] { _named(item) }
	}
	every kind in input.scan.encodings { encoding_allowed(kind) }
}

language_scanned if is_object(rules)

complete if input.scan.complete == true

parsed if input.scan.parsed == true

import_allowed(module) if {
	module.kind == "module"
	is_array(rules.modules[module.id])
}

member_allowed(member) if {
	is_string(member.id)
	member.name in rules.modules[member.module]
}

member_allowed(member) if member.top in _refused_modules

module_plain(module) if {
	is_string(module.id)
	module.as_value == false
}

module_plain(module) if module.top in _refused_modules

call_allowed(call) if {
	_named(call)
	_callable_name(call)
	_callable_attribute(call)
}

attribute_allowed(attribute) if {
	_named(attribute)
	attribute.dunder == false
	_absent(attribute.id, "denied_attributes")
}

name_allowed(name) if {
	_named(name)
	name.dunder == false
	_admitted_variable(name)
	_admitted_value(name)
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
# description: Modules whose import is refused; their members need no finding of their own.
# custom:
#   proof: every module in this set is imported and has no row, and is refused for that
_refused_modules := {module.id | some module in input.scan.imports; is_string(module.id)} - _admitted_modules

# METADATA
# custom:
#   proof: a module that is missing here is refused
_admitted_modules contains name if {
	some name, members in rules.modules
	is_array(members)
}

_named(name) if {
	is_string(name.id)
	name.id != ""
}

# METADATA
# description: The `denied_*` lists as sets; a list that is missing in policy/code.yaml is not a set.
# custom:
#   proof: a missing list is not a set, and then no name counts as absent from it
_denied[list] := {name | some name in rules[list]} if {
	some list in {"denied_calls", "denied_names", "denied_attributes"}
	is_array(rules[list])
}

# METADATA
# custom:
#   proof: both are present and of the right type; an empty list denies nothing
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
#   proof: a denied name is refused wherever it occurs, so the call need not be refused again
_callable_name(call) if {
	call.id in rules.builtins
	_absent(call.id, "denied_calls")
}

# Refused by its name alone, by another finding.
_callable_name(call) if {
	call.id in rules.denied_names
	_absent(call.id, "denied_calls")
	some name in input.scan.names
	name.id == call.id
	name.variable == true
}

_callable_attribute(call) if call.by_attribute == false

_callable_attribute(call) if _absent(call.id, "denied_attributes")

_admitted_variable(name) if name.variable == false

_admitted_variable(name) if _absent(name.id, "denied_names")

# A name that is only called is subject to the rules of calls.
_admitted_value(name) if name.as_value == false

_admitted_value(name) if name.builtin == false

_admitted_value(name) if name.id in rules.builtins

# METADATA
# custom:
#   proof: each list is present; it is empty if the code has nothing of that kind
_all_hold if {
	every name in _lists { is_array(input.scan[name]) }
	every module in input.scan.imports { import_allowed(module) }
	every member in input.scan.members { member_allowed(member) }
	every module in input.scan.modules { module_plain(module) }
	every call in input.scan.calls { call_allowed(call) }
	every attribute in input.scan.attributes { attribute_allowed(attribute) }
	every name in input.scan.names { name_allowed(name) }
	every kind in input.scan.literals { literal_allowed(kind) }
	every kind in input.scan.computed { computed_allowed(kind) }
	every kind in input.scan.encodings { encoding_allowed(kind) }
}

_lists := ["imports", "members", "modules", "calls", "attributes", "names", "literals", "computed", "encodings"]
