# Conditions on the values of arguments: which are shown to hold, and which are shown not to hold.
#
# Neither is shown for a value that is missing, of another type or not understood. An item is compared letter for letter
# for allow rules, and as `folded` for deny and confirm rules, because programs ignore case, width and blanks.
package admission.lib.tool_values

import data.admission.lib.host
import future.keywords.not

# The arguments that an allow rule has to cover, each as the aspects by which a rule may cover it.
#
# METADATA
# custom:
#   proof: the arguments come from the values of the policy; one without a fact has no aspect but `any`
to_cover := [aspects(name) | some name, _ in data.policy.tool_lookup.tools[input.call.tool].values] if {
	is_object(data.policy.tool_lookup.tools[input.call.tool].values)
}

# METADATA
# custom:
#   proof: it collects the conditions that are shown to hold
aspects(name) := {aspect |
	some aspect, conditions in data.policy.tool_lookup.tools[input.call.tool].values[name]
	_all_shown(name, conditions)
}

# METADATA
# custom:
#   proof: a rule with `any` has no conditions, and covers an argument whether or not it is there
_all_shown(name, conditions) if {
	is_array(conditions)
	every condition in conditions {
		some value in input.values

		# regal ignore:non-loop-expression
		value.name == name
		_shown(condition, value)
	}
}

_shown(condition, value) if {
	condition.optional == true
	value.present == false
}

_shown(condition, value) if {
	condition.kind == "items"
	_flat(value)
	_between(condition, value.size)
}

_shown(condition, value) if {
	condition.kind == "sql"
	value.present == true
	_sql_shown(condition.of, value.sql)
}

# METADATA
# custom:
#   proof: a value with items has at least one, and their number is a fact of its own
_shown(condition, value) if {
	_flat(value)
	true in {condition.list, value.shape == "one"}
	every item in value.items {
		_item_shown(condition, item)
	}
}

_flat(value) if {
	value.present == true
	value.shape in {"one", "list"}
	is_array(value.items)
	count(value.items) > 0
	count(value.items) == value.size
}

_item_shown(condition, item) if {
	condition.kind == "one_of"
	some operand in condition.of
	_plain(item) == operand
}

_item_shown(condition, item) if {
	condition.kind == "pattern"
	regex.match(condition.of, _text(item))
}

_item_shown(condition, item) if {
	condition.kind == "prefixes"
	some prefix in condition.of
	startswith(_text(item), prefix)
}

_item_shown(condition, item) if {
	condition.kind == "suffixes"
	some suffix in condition.of
	endswith(_text(item), suffix)
}

# METADATA
# custom:
#   proof: the domains of the text are present and not empty
_item_shown(condition, item) if {
	condition.kind == "email_domains"
	count(item.domains) > 0
	every domain in item.domains {
		some name in host.names(domain)

		# regal ignore:non-loop-expression
		name in condition.of
	}
}

_item_shown(condition, item) if {
	condition.kind == "range"
	_between(condition, _number(item))
}

_item_shown(condition, item) if {
	condition.kind == "length"
	is_string(_text(item))
	_between(condition, item.length)
}

_plain(item) := _text(item)

_plain(item) := _number(item)

_plain(item) := item.boolean if {
	item.kind == "boolean"
	is_boolean(item.boolean)
}

_text(item) := item.text if {
	item.kind == "text"
	is_string(item.text)
}

_number(item) := item.number if {
	item.kind == "number"
	is_number(item.number)
}

_between(condition, number) if {
	is_number(number)
	is_number(condition.from)
	is_number(condition.to)
	condition.from <= number
	number <= condition.to
}

# METADATA
# custom:
#   proof: the statements are present and not empty; tables and functions that a rule leaves out cover none
_sql_shown(stated, sql) if {
	sql.understood == true
	count(sql.statements) > 0
	every kind in sql.statements {
		kind in stated.statements
	}
	is_array(sql.tables)
	every table in sql.tables {
		_among(table, stated, "tables")
	}
	is_array(sql.functions)
	every name in sql.functions {
		_function_shown(name, stated)
	}
}

_function_shown(name, _) if data.policy.tool_lookup.plain_sql_functions[name] == true

_function_shown(name, stated) if _among(name, stated, "functions")

_among(name, stated, part) if name in stated[part]

_among(_, stated, part) if stated[part] == "any"

# What a value is made of is known. Otherwise a rule that asks a person would match for want of it.
whole(value) if {
	is_string(value.name)
	value.present == false
}

whole(value) if {
	is_string(value.name)
	value.present == true
	value.shape in {"other", "hidden"}
}

# METADATA
# custom:
#   proof: a value with items has at least one, and their number is a fact of its own
whole(value) if {
	is_string(value.name)
	_flat(value)
	every item in value.items {
		_item_whole(item)
	}
}

_item_whole(item) if item.kind in {"number", "boolean", "null"}

_item_whole(item) if {
	is_string(_text(item))
	is_string(item.folded)
	is_number(item.length)
}

# A text that is too long to be compared.
#
# METADATA
# custom:
#   proof: one of both texts is never there without the other
_item_whole(item) if {
	item.kind == "text"
	not item.text
	not item.folded
	is_number(item.length)
}

# One of the conditions of a rule is shown not to hold, so that the rule does not match. `values` are the facts.
refuted(where, values) if {
	some condition in where
	some value in values
	value.name == condition.argument
	_refuted(condition, value)
}

_refuted(condition, value) if {
	condition.optional == true
	value.present == false
}

_refuted(condition, value) if {
	condition.kind == "items"
	_flat(value)
	_outside(condition, value.size)
}

_refuted(condition, value) if {
	condition.kind == "sql"
	value.present == true
	value.sql.understood == true
	_sql_refuted(condition.of, value.sql)
}

# METADATA
# custom:
#   proof: a value with items has at least one, and their number is a fact of its own
_refuted(condition, value) if {
	_flat(value)
	every item in value.items {
		_item_refuted(condition, item)
	}
}

# METADATA
# custom:
#   proof: the folded text is present, and is compared with every operand
_item_refuted(condition, item) if {
	condition.kind == "one_of"
	every operand in condition.of {
		is_string(operand)
	}
	is_array(condition.folded)
	folded := _folded(item)
	not folded in condition.folded
}

# METADATA
# custom:
#   proof: the number is present, and is compared with every operand
_item_refuted(condition, item) if {
	condition.kind == "one_of"
	every operand in condition.of {
		is_number(operand)
	}
	number := _number(item)
	not number in condition.of
}

# METADATA
# custom:
#   proof: the truth value is present, and is compared with every operand
_item_refuted(condition, item) if {
	condition.kind == "one_of"
	item.kind == "boolean"
	is_boolean(item.boolean)
	every operand in condition.of {
		is_boolean(operand)
		operand != item.boolean
	}
}

_item_refuted(condition, item) if {
	condition.kind == "pattern"
	regex.match(condition.loose, _text(item)) == false
	regex.match(condition.loose, _folded(item)) == false
}

# METADATA
# custom:
#   proof: the folded text is present, and is compared with every operand
_item_refuted(condition, item) if {
	condition.kind == "prefixes"
	folded := _folded(item)
	every prefix in condition.folded {
		startswith(folded, prefix) == false
	}
}

# METADATA
# custom:
#   proof: the folded text is present, and is compared with every operand
_item_refuted(condition, item) if {
	condition.kind == "suffixes"
	folded := _folded(item)
	every suffix in condition.folded {
		endswith(folded, suffix) == false
	}
}

# METADATA
# custom:
#   proof: the domains of the text are present and not empty
_item_refuted(condition, item) if {
	condition.kind == "email_domains"
	count(item.domains) > 0
	every domain in item.domains {
		names := host.names(domain) | {concat("", ["*.", domain])}
		every operand in condition.of {
			not operand in names
		}
	}
}

_item_refuted(condition, item) if {
	condition.kind == "range"
	_outside(condition, _number(item))
}

_item_refuted(condition, item) if {
	condition.kind == "length"
	is_string(_text(item))
	_outside(condition, item.length)
}

# An empty folded text is one only if the text is empty.
_folded(item) := item.folded if {
	item.kind == "text"
	is_string(item.folded)
	item.folded != ""
}

_folded(item) := "" if {
	item.kind == "text"
	item.folded == ""
	item.length == 0
}

_outside(condition, number) if {
	is_number(number)
	is_number(condition.from)
	number < condition.from
}

_outside(condition, number) if {
	is_number(number)
	is_number(condition.to)
	number > condition.to
}

# METADATA
# custom:
#   proof: the statements are present and not empty
_sql_refuted(stated, sql) if {
	is_array(stated.statements)
	count(sql.statements) > 0
	every kind in sql.statements {
		not kind in stated.statements
	}
}

# METADATA
# custom:
#   proof: the list of tables is present; a name in a schema is compared with and without it
_sql_refuted(stated, sql) if {
	is_array(stated.tables)
	is_array(sql.tables)
	every table in sql.tables {
		every named in stated.tables {
			not lower(named) in _endings(lower(table))
		}
	}
}

# METADATA
# custom:
#   proof: the list of functions is present; a name in a schema is compared with and without it
_sql_refuted(stated, sql) if {
	is_array(stated.functions)
	is_array(sql.functions)
	every name in sql.functions {
		every named in stated.functions {
			not lower(named) in _endings(name)
		}
	}
}

# `a.b.c`, `b.c` and `c`.
#
# METADATA
# custom:
#   proof: it collects parts of one text that is present
_endings(name) := {concat(".", array.slice(parts, index, count(parts))) | some index, _ in parts} if {
	parts := split(name, ".")
}
