package admission.lib.tool_values_test

import data.admission.lib.tool_rules
import data.admission.lib.tool_values
import future.keywords.not

_text(text) := {"kind": "text", "text": text, "folded": lower(text), "length": count(text)}

_number(number) := {"kind": "number", "number": number}

_mail(domains) := object.union(_text("x"), {"domains": domains})

_one(item) := {"name": "a", "present": true, "shape": "one", "size": 1, "items": [item]}

_list(items) := {"name": "a", "present": true, "shape": "list", "size": count(items), "items": items}

_absent := {"name": "a", "present": false, "shape": "one", "size": 0, "items": []}

_hidden := {"name": "a", "present": true, "shape": "hidden", "size": 1, "items": []}

_condition(kind, more) := object.union({"kind": kind, "optional": false, "list": false}, more)

_get := _condition("one_of", {"of": ["GET", "HEAD"], "folded": ["get", "head"]})

_small := _condition("range", {"from": 0, "to": 1000})

_ours := _condition("email_domains", {"of": ["a.example", "*.b.example"], "folded": [], "list": true})

_reading := _condition("sql", {"of": {"statements": ["select"], "tables": ["orders"], "functions": ["f"]}})

_either := _condition("sql", {"of": {
	"statements": ["select"],
	"tables": ["orders", "users"],
	"functions": ["f", "g"],
}})

_anything := _condition("sql", {"of": {"statements": ["select"], "tables": "any", "functions": "any"}})

_one_of(operands) := _condition("one_of", {"of": operands, "folded": []})

_abc := _condition("pattern", {"of": "^(?:A BC)$", "loose": "(?i)^(?:A BC)$"})

_short := _condition("length", {"from": 1, "to": 3})

_sql(statements, tables, functions) := {
	"name": "a", "present": true, "shape": "one", "size": 1, "items": [_text("q")],
	"sql": {"understood": true, "statements": statements, "tables": tables, "functions": functions},
}

# Conditions, values, and whether the condition is shown to hold (`yes`), shown not to hold (`no`), or neither.
_cases := [
	[_get, _one(_text("GET")), "yes"],
	[_get, _one(_text("get")), "neither"],
	[_get, _one(_text("POST")), "no"],
	[_get, _one(_text("")), "no"],
	[_get, _one(_number(1)), "neither"],
	[_get, _one({"kind": "null"}), "neither"],
	[_get, _one(object.remove(_text("POST"), ["folded"])), "neither"],
	[_get, _one(object.union(_text("GET"), {"folded": ""})), "yes"],
	[_get, _one(object.union(_text("POST"), {"folded": ""})), "neither"],
	[_get, _list([_text("GET")]), "neither"],
	[_get, _list([_text("POST"), _text("PUT")]), "no"],
	[_get, _list([_text("POST"), _text("GET")]), "neither"],
	[object.union(_get, {"list": true}), _list([_text("GET"), _text("HEAD")]), "yes"],
	[_get, _absent, "neither"],
	[object.union(_get, {"optional": true}), _absent, "both"],
	[_get, _hidden, "neither"],
	[_get, {"name": "a"}, "neither"],
	[_get, object.union(_one(_text("POST")), {"size": 2}), "neither"],
	[_condition("one_of", {"of": [1, 2], "folded": []}), _one(_number(2)), "yes"],
	[_condition("one_of", {"of": [1, 2], "folded": []}), _one(_number(3)), "no"],
	[_condition("one_of", {"of": [1, 2], "folded": []}), _one({"kind": "number"}), "neither"],
	[_condition("one_of", {"of": [true], "folded": []}), _one({"kind": "boolean", "boolean": true}), "yes"],
	[_condition("one_of", {"of": [true], "folded": []}), _one({"kind": "boolean", "boolean": false}), "no"],
	[_condition("one_of", {"of": [true], "folded": []}), _one({"kind": "boolean"}), "neither"],
	[_condition("pattern", {"of": "^(?:[A-Z]{3})$", "loose": "(?i)^(?:[A-Z]{3})$"}), _one(_text("ABC")), "yes"],
	[_condition("pattern", {"of": "^(?:[A-Z]{3})$", "loose": "(?i)^(?:[A-Z]{3})$"}), _one(_text("abc")), "neither"],
	[_condition("pattern", {"of": "^(?:[A-Z]{3})$", "loose": "(?i)^(?:[A-Z]{3})$"}), _one(_text("abcd")), "no"],
	[_condition("prefixes", {"of": ["Ab"], "folded": ["ab"]}), _one(_text("Abc")), "yes"],
	[_condition("prefixes", {"of": ["Ab"], "folded": ["ab"]}), _one(_text("abc")), "neither"],
	[_condition("prefixes", {"of": ["Ab"], "folded": ["ab"]}), _one(_text("xAb")), "no"],
	[_condition("suffixes", {"of": [".md"], "folded": [".md"]}), _one(_text("a.md")), "yes"],
	[_condition("suffixes", {"of": [".md"], "folded": [".md"]}), _one(_text("a.MD")), "neither"],
	[_condition("suffixes", {"of": [".md"], "folded": [".md"]}), _one(_text("a.mdx")), "no"],
	[_ours, _list([_mail(["a.example"]), _mail(["x.b.example"])]), "yes"],
	[_ours, _one(_mail(["b.example"])), "neither"],
	[_ours, _one(_mail(["c.example", "d.example"])), "no"],
	[_ours, _one(_mail(["a.example", "c.example"])), "neither"],
	[_ours, _one(_mail([])), "neither"],
	[_ours, _one(_text("alice")), "neither"],
	[_small, _one(_number(0)), "yes"],
	[_small, _one(_number(1000)), "yes"],
	[_small, _one(_number(1000.01)), "no"],
	[_small, _one(_number(-1)), "no"],
	[_small, _one(_text("10")), "neither"],
	[object.remove(_small, ["to"]), _one(_number(10)), "neither"],
	[object.remove(_small, ["from", "to"]), _one(_number(10)), "neither"],
	[_condition("length", {"from": 1, "to": 3}), _one(_text("abc")), "yes"],
	[_condition("length", {"from": 1, "to": 3}), _one(_text("abcd")), "no"],
	[_condition("length", {"from": 1, "to": 3}), _one(_number(2)), "neither"],
	[_condition("items", {"from": 1, "to": 2, "list": true}), _list([_text("a"), _text("b")]), "yes"],
	[_condition("items", {"from": 1, "to": 1, "list": true}), _list([_text("a"), _text("b")]), "no"],
	[_condition("items", {"from": 1, "to": 2, "list": true}), _hidden, "neither"],
	[_reading, _sql(["select"], ["orders"], ["count", "f"]), "yes"],
	[_reading, _sql(["select"], [], []), "both"],
	[_reading, _sql(["delete"], ["orders"], ["f"]), "no"],
	[_reading, _sql(["select", "delete"], ["hr.orders"], ["x.f"]), "neither"],
	[_reading, _sql(["select"], ["users"], ["f"]), "no"],
	[_reading, _sql(["select"], ["orders"], ["g"]), "no"],
	[_reading, _sql(["select"], ["orders", "users"], ["f", "g"]), "neither"],
	[_reading, _sql(["select"], ["Orders"], ["f"]), "neither"],
	[_reading, _sql([], ["orders"], ["f"]), "neither"],
	[_reading, object.union(_sql(["select"], ["orders"], []), {"sql": {"understood": false}}), "neither"],
	[_reading, _one(_text("q")), "neither"],
	[_anything, _sql(["select"], ["x"], ["g"]), "yes"],
	[_condition("sql", {"of": {"statements": ["select"]}}), _sql(["select"], ["x"], []), "neither"],
	[_condition("unheard of", {"of": []}), _one(_text("x")), "neither"],
]

# As above: what is said of a value is missing, contradicts itself, or is of another type.
_hostile := [
	[_get, object.union(_one(_text("GET")), {"present": false}), "neither"],
	[object.union(_get, {"list": true}), object.union(_one(_text("GET")), {"shape": "hidden"}), "neither"],
	[object.union(_get, {"list": true}), _list([]), "neither"],
	[_get, object.union(_one(_text("GET")), {"items": {"0": _text("GET")}}), "neither"],
	[_get, object.union(_one(_text("POST")), {"size": "1"}), "neither"],
	[_get, _one(object.union(_text("GET"), {"kind": "null"})), "neither"],
	[_get, _one(object.union(_text("POST"), {"kind": "null"})), "neither"],
	[_get, _one(object.union(_text(""), {"kind": "null"})), "neither"],
	[_get, _one(object.union(_text("POST"), {"folded": 5})), "neither"],
	[_get, _one(object.union(_text(""), {"folded": "post"})), "no"],
	[_get, _one({"kind": "boolean", "boolean": "GET"}), "neither"],
	[_get, _one({"kind": "number", "number": "GET"}), "neither"],
	[_get, _one({"kind": "boolean", "boolean": true}), "neither"],
	[object.remove(_get, ["folded"]), _one(_text("POST")), "neither"],
	[_one_of([1]), _one({"kind": "text", "text": 1}), "neither"],
	[_one_of([1]), _one({"kind": "null", "number": 1}), "neither"],
	[_one_of([1]), _one(_text("x")), "neither"],
	[_one_of(["x", 1]), _one(_text("y")), "neither"],
	[_one_of(["x", 1]), _one(_number(2)), "neither"],
	[_one_of(["x", true]), _one({"kind": "boolean", "boolean": false}), "neither"],
	[_one_of([true]), _one({"kind": "boolean", "boolean": null}), "neither"],
	[_one_of([true]), _one({"kind": "null", "boolean": true}), "neither"],
	[_one_of([true]), _one({"kind": "null", "boolean": false}), "neither"],
	[_abc, _one(object.union(_text("a bc"), {"folded": "abc"})), "neither"],
	[_abc, _one(object.union(_text("ａ ｂｃ"), {"folded": "a bc"})), "neither"],
	[_small, _one({"kind": "text", "number": 5}), "neither"],
	[_small, _one({"kind": "text", "number": -5}), "neither"],
	[object.union(_small, {"from": null}), _one(_number(5)), "neither"],
	[object.union(_small, {"from": "x"}), _one(_number(5)), "neither"],
	[object.union(_small, {"to": null}), _one(_number(5)), "neither"],
	[object.union(_small, {"to": "x"}), _one(_number(5)), "neither"],
	[_short, _one(object.union(_text("ab"), {"length": null})), "neither"],
	[_short, _one(object.union(_text("ab"), {"length": "2"})), "neither"],
	[_short, _one({"kind": "null", "length": 2}), "neither"],
	[_short, _one({"kind": "null", "length": 9}), "neither"],
	[_condition("items", {"from": 1, "to": 1}), object.union(_hidden, {"size": 5}), "neither"],
	[_reading, object.union(_sql(["select"], ["orders"], ["f"]), {"present": false}), "neither"],
	[_reading, object.union(_sql(["delete"], ["orders"], ["f"]), {"present": false}), "neither"],
	[_reading, _sql(["select"], {}, ["f"]), "neither"],
	[_reading, _sql(["select"], ["orders"], {}), "neither"],
	[_condition("sql", {"of": {"tables": "any"}}), _sql(["delete"], [], []), "neither"],
]

# As above: several operands, items, or parts of a statement, of which one differs from the others.
_several := [
	[object.union(_get, {"list": true}), _list([_text("GET"), _text("POST")]), "neither"],
	[object.union(_get, {"optional": true}), _one(_text("GET")), "yes"],
	[object.union(_get, {"optional": true}), _one(_text("POST")), "no"],
	[_one_of([true, false]), _one({"kind": "boolean", "boolean": true}), "yes"],
	[_condition("prefixes", {"of": ["a", "x"], "folded": ["a", "x"]}), _one(_text("xa")), "yes"],
	[_condition("suffixes", {"of": ["a", "x"], "folded": ["a", "x"]}), _one(_text("ax")), "yes"],
	[_reading, _sql(["select", "delete"], ["orders"], ["f"]), "neither"],
	[_either, _sql(["select"], ["users"], ["g"]), "yes"],
	[_anything, _sql(["select"], [], []), "yes"],
]

_lookup(condition) := {"tool_lookup": {
	"plain_sql_functions": {"count": true},
	"tools": {"t": {"selectors": ["t"], "values": {"a": {"value a 1": [condition], "value a any": []}}}},
}}

_shown(cases) := {number | some number, _ in cases; "shown" in tool_values.aspects(sprintf("%d", [number]))}

# The cases whose result is another one, each with that result; every case is an argument of one tool.
_wrong(cases) := [[row, found] |
	words := {[true, true]: "both", [true, false]: "yes", [false, true]: "no", [false, false]: "neither"}
	names := [sprintf("%d", [number]) | some number, _ in cases]
	lookup := {"tool_lookup": {
		"plain_sql_functions": {"count": true},
		"tools": {"t": {"values": {names[number]: {"shown": [row[0]]} | some number, row in cases}}},
	}}
	values := [object.union(row[1], {"name": names[number]}) | some number, row in cases]
	input_ := {"call": {"tool": "t"}, "values": values}

	# regal ignore:with-outside-test-context,external-reference
	shown := _shown(cases) with input as input_ with data.policy as lookup
	some number, row in cases
	refuted := [1 | tool_values.refuted([object.union(row[0], {"argument": "a"})], [row[1]])]
	found := words[[number in shown, count(refuted) > 0]]
	found != row[2]
]

test_conditions if _wrong(_cases) == []

test_a_value_that_contradicts_itself_shows_nothing if _wrong(_hostile) == []

test_conditions_on_several_values if _wrong(_several) == []

test_a_condition_of_an_unknown_kind_shows_nothing if {
	unknown := {"kind": "unheard of", "optional": false}
	_wrong([[object.union(row[0], unknown), row[1], "neither"] | some row in _cases]) == []
}

test_another_argument_shows_nothing if {
	others := [object.union(_one(_text(text)), {"name": "b"}) | some text in ["GET", "POST"]]
	not tool_values.refuted([object.union(_get, {"argument": "a"})], others)
	found := tool_values.to_cover with input as {"call": {"tool": "t"}, "values": others} with data.policy as _lookup(_get)
	found == [{"value a any"}]
}

test_any_covers_an_argument_without_a_fact if {
	found := tool_values.to_cover with input as {"call": {"tool": "t"}} with data.policy as _lookup(_get)
	found == [{"value a any"}]
}

test_conditions_that_are_no_list_cover_nothing if {
	lookup := {"tool_lookup": {"tools": {"t": {"selectors": ["t"], "values": {"a": {"value a 1": {}}}}}}}
	found := tool_values.to_cover with input as {"call": {"tool": "t"}, "values": []} with data.policy as lookup
	found == [set()]
}

test_without_the_arguments_of_a_tool_nothing_is_covered if {
	not tool_values.to_cover with input as {"call": {"tool": "u"}, "values": []} with data.policy as _lookup(_get)
	lost := json.remove(_lookup(_get), ["tool_lookup/tools/t/values"])
	not tool_values.to_cover with input as {"call": {"tool": "t"}, "values": []} with data.policy as lost
}

_section := {
	"size": 2,
	"names": ["s/one", "s/two"],
	"selectors": {"t": {"host b": 1}},
	"conditional": {"t": [
		{"number": 0, "aspects": ["always"], "where": [object.union(_get, {"argument": "a"})]},
		{"number": 1, "aspects": ["host a"], "where": [
			object.union(_get, {"argument": "a"}),
			object.union(_small, {"argument": "b"}),
		]},
	]},
}

_rules := {"tool_lookup": {"tools": {"t": {"selectors": ["t"]}}, "policies": {"p": {"deny": _section}}}}

test_a_rule_with_conditions_matches_unless_one_is_shown_not_to_hold if {
	large := object.union(_one(_number(2000)), {"name": "b"})
	rows := [
		[{"always"}, [_one(_text("POST"))], set()],
		[{"always"}, [_one(_text("GET"))], {0}],
		[{"always", "host a"}, [_one(_text("GET"))], {0, 1}],
		[{"always", "host a"}, [_one(_text("GET")), large], {0}],
		[{"host b"}, [_one(_text("GET"))], {1}],
	]
	absent := {"name": "b", "present": false}
	every row in rows {
		values := array.concat(row[1], [absent | count(row[1]) == 1])
		tool_rules.matching("p", "t", "deny", row[0], values) == row[2] with data.policy as _rules
	}
	not tool_rules.matching("p", "t", "deny", {"always"}, [_one(_text("GET"))]) with data.policy as _rules
	lost := json.remove(_rules, ["tool_lookup/policies/p/deny/conditional"])
	not tool_rules.matching("p", "t", "deny", {"always"}, []) with data.policy as lost
}

test_whole_values if {
	absent := {"name": "a", "present": false}
	nested := {"name": "a", "present": true, "shape": "other"}
	every value in [absent, nested, _one(_text("GET")), _one(_number(2))] {
		tool_values.whole(value)
		every lost in ["name", "present"] {
			not tool_values.whole(json.remove(value, [lost]))
		}
	}
	every lost in [
		"shape", "size", "items", "items/0/kind", "items/0/text", "items/0/folded", "items/0/length",
	] {
		not tool_values.whole(json.remove(_one(_text("GET")), [lost]))
	}
	tool_values.whole(json.remove(_one(_text("GET")), ["items/0/text", "items/0/folded"]))
	not tool_values.whole(object.union(nested, {"shape": "none"}))
	every item in [{"kind": "text"}, {"length": 1}, {"kind": "text", "length": "1"}] {
		not tool_values.whole(_list([_text("GET"), item]))
	}
}
