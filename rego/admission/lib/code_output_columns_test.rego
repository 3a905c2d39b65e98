package admission.lib.code_output_columns_test

import data.admission.lib.code_output
import future.keywords.not

# A contract with these fields.
_policy(fields) := {"code": {"stdout_bytes": 4, "contracts": {"m": {"fields": fields}}}}

_fits(expected, field) if {
	# regal ignore:with-outside-test-context
	code_output.fits(object.union({"id": "a", "present": true}, field)) with input as {"contract": "m"}
		with data.policy as _policy([object.union({"name": "a"}, expected)]) # regal ignore:with-outside-test-context
}

_list := {"type": "list", "least": 1, "most": 3, "items": {"type": "integer", "minimum": 0, "maximum": 9}}

_table := {
	"type": "table", "least": 1, "most": 3,
	"columns": [{"name": "x", "type": "text", "characters": 5}, {"name": "y", "type": "boolean"}],
}

test_parts if {
	fields := [
		object.union({"name": "n"}, {"type": "number", "items": {}}),
		object.union({"name": "l"}, _list),
		object.union_n([{"name": "t"}, _table, {"items": {}}]),
	]
	ids := [[part.id, part.column] | some part in code_output.parts] with input as {"contract": "m"}
		with data.policy as _policy(fields)
	ids == [["n", false], ["l", false], ["l.items", true], ["t", false], ["t.x", true], ["t.y", true]]
}

test_text if {
	expected := {"type": "text", "characters": 5}
	field := {"kind": "text", "characters": 5, "content": "clean"}
	_fits(expected, field)
	every change in [{"kind": "list"}, {"characters": 6}, {"characters": null}, {"content": null}] {
		not _fits(expected, object.union(field, change))
	}
	not _fits({"type": "request", "characters": 5}, field)
}

test_list if {
	field := {"kind": "list", "entries": 3, "content": "clean"}
	_fits(_list, field)
	every change in [{"kind": "text"}, {"entries": 0}, {"entries": 4}, {"entries": null}, {"content": null}] {
		not _fits(_list, object.union(field, change))
	}
	not _fits(object.union(_list, {"type": "odd"}), field)
}

test_table if {
	field := {"kind": "list", "entries": 3, "rows": 3, "content": "clean"}
	_fits(_table, field)
	every change in [{"rows": 2}, {"entries": 4, "rows": 4}, {"kind": "text"}, {"content": null}] {
		not _fits(_table, object.union(field, change))
	}
	not _fits(object.union(_table, {"type": "number"}), field)
}

_whole := {"values": 2, "missing": 0, "least": 1, "most": 2}

_bounded := {"minimum": 0, "maximum": 9}

# What is expected of a column, and what is found in one that fits.
_columns := [
	[object.union(_bounded, {"type": "number"}), object.union(_whole, {"numbers": 2})],
	[object.union(_bounded, {"type": "integer"}), object.union(_whole, {"integers": 2})],
	[{"type": "boolean"}, {"values": 2, "missing": 0, "booleans": 2}],
	[{"type": "text", "characters": 5}, {"values": 2, "missing": 0, "strings": 2, "longest": 5}],
	[
		{"type": "choice", "one_of": ["a", "b"]},
		{"values": 2, "missing": 0, "strings": 2, "texts": [crypto.sha256("a"), crypto.sha256("b")]},
	],
]

test_columns if {
	every row in _columns { code_output.column_fits(row[0], row[1]) }
	every row in _columns {
		not code_output.column_fits(row[0], object.union(row[1], {"missing": 1}))
		code_output.column_fits(object.union(row[0], {"optional": true}), object.union(row[1], {"missing": 1}))
		not code_output.column_fits(row[0], object.union(row[1], {"values": 3}))
		not code_output.column_fits(row[0], object.remove(row[1], ["values"]))
	}
}

test_a_column_is_of_its_type if {
	every expected in [row[0] | some row in _columns] {
		every column in [row[1] | some row in _columns; row[0].type != expected.type] {
			not code_output.column_fits(object.union(expected, {"characters": 9}), column)
		}
	}
	words := [{"values": "two", "missing": 0, "least": 1, "most": 2, kind: "two"} | some kind in ["numbers", "integers"]]
	every column in words {
		not code_output.column_fits(object.union(_bounded, {"type": "number"}), column)
		not code_output.column_fits(object.union(_bounded, {"type": "integer"}), column)
	}
	chosen := {"values": 1, "missing": 0, "strings": 1, "texts": {"x": crypto.sha256("a")}}
	not code_output.column_fits({"type": "choice", "one_of": ["a"]}, chosen)
}

test_a_field_is_no_column_and_a_column_no_field if {
	both := {"kind": "integer", "number": 5, "column": object.union(_whole, {"integers": 2})}
	_fits({"type": "integer", "minimum": 0, "maximum": 9}, both)
	not _fits({"type": "integer", "minimum": 0, "maximum": 3}, both)
	below := {"id": "a.items", "present": true}
	policy := _policy([object.union({"name": "a"}, _list)])
	code_output.fits(object.union(below, both)) with input as {"contract": "m"} with data.policy as policy
	out := object.union(both, {"column": object.union(both.column, {"most": 10})})
	not code_output.fits(object.union(below, out)) with input as {"contract": "m"} with data.policy as policy
}

test_streams_of_a_contract_with_fields if {
	own := {"code": {"contracts": {"m": {"streams": {"stdout_bytes": 9}, "fields": []}}}}
	not code_output.streams with input as {"contract": "m"} with data.policy as own
	stated := {"code": {"contracts": {"m": {"streams": {"stdout_bytes": 9}, "fields": [{"name": "a"}]}}}}
	code_output.streams == {"stdout_bytes": 9} with input as {"contract": "m"} with data.policy as stated
	code_output.streams.stdout_bytes == 4 with input as {"contract": "m"} with data.policy as _policy([{"name": "a"}])
}
