package admission.lib.code_scan_test

import data.admission.lib.code_scan
import future.keywords.not

_policy := {"code": {"scan": {"python": {
	"modules": {"json": ["loads"], "odd": "loads"},
	"builtins": ["print", "input", "eval"],
	"literals": ["dunder"],
	"computed": ["member_variable"],
	"encodings": ["utf-8"],
	"denied_calls": ["eval"],
	"denied_names": ["os", "globals"],
	"denied_attributes": ["system"],
	"input_reads": 1,
}}}}

_clean := {"scan": {
	"language": "python",
	"parsed": true,
	"complete": true,
	"imports": [{"id": "json", "kind": "module"}],
	"members": [{"id": "json.loads", "top": "json", "module": "json", "name": "loads"}],
	"modules": [{"id": "json", "top": "json", "as_value": false}],
	"calls": [{"id": "print", "by_name": true, "by_attribute": false, "builtin": true}],
	"attributes": [{"id": "loads", "dunder": false}],
	"names": [{
		"id": "print", "variable": true, "as_value": true, "dunder": false, "builtin": true, "bound": false,
	}],
	"literals": [{"id": "dunder"}],
	"computed": [{"id": "member_variable"}],
	"encodings": [{"id": "utf-8"}],
	"network_literals": 0,
	"input_calls": 1,
	"input_values": 0,
}}

_lists := {
	"imports", "members", "modules", "calls", "attributes", "names", "literals", "computed", "encodings",
}

_other := {
	"imports": {"id": "os", "kind": "module"},
	"members": {"id": "json.codecs", "top": "json", "module": "json", "name": "codecs"},
	"modules": {"id": "json", "top": "json", "as_value": true},
	"calls": {"id": "eval", "by_name": true, "by_attribute": false, "builtin": true},
	"attributes": {"id": "system", "dunder": false},
	"names": {"id": "os", "variable": true, "as_value": true, "dunder": false, "builtin": false, "bound": false},
	"literals": {"id": "path"},
	"computed": {"id": "format"},
	"encodings": {"id": "utf-7"},
}

_with(changes) := object.union(_clean, {"scan": changes})

test_clean if {
	code_scan.clean with input as _clean with data.policy as _policy
	empty := _with({name: [] | some name in _lists})
	code_scan.clean with input as empty with data.policy as _policy
}

test_not_clean if {
	every change in [
		{"language": "ruby"}, {"language": ""}, {"parsed": false}, {"complete": false},
		{"network_literals": 1}, {"input_calls": 2}, {"input_values": 1},
	] {
		not code_scan.clean with input as _with(change) with data.policy as _policy
	}
	every name, found in _other {
		not code_scan.clean with input as _with({name: [found]}) with data.policy as _policy
	}
}

test_readable_only_with_lists_of_what_was_found if {
	code_scan.readable with input as _clean with data.policy as _policy
	every name in _lists {
		every value in [null, {}, {"0": _clean.scan[name][0]}] {
			changed := object.union(object.remove(_clean.scan, [name]), {name: value})
			not code_scan.readable with input as {"scan": changed} with data.policy as _policy
		}
	}
	every name in ["input_calls", "input_values"] {
		code_scan.readable with input as _with({name: 2}) with data.policy as _policy
		not code_scan.readable with input as _with({name: null}) with data.policy as _policy
	}
}

test_not_clean_without_a_fact if {
	every name, _ in _clean.scan {
		not code_scan.clean with input as json.remove(_clean, [["scan", name]]) with data.policy as _policy
		not code_scan.clean with input as _with({name: null}) with data.policy as _policy
	}
	every name in _lists {
		not code_scan.clean with input as json.patch(_clean, [{"op": "replace", "path": ["scan", name], "value": {}}])
			with data.policy as _policy
	}
}

test_not_clean_without_a_field if {
	paths := {["scan", name, "0", field] |
		some name in _lists
		some field, _ in _clean.scan[name][0]
	}
	held := {concat(".", [path[1], path[3]]) |
		some path in paths
		code_scan.clean with input as json.remove(_clean, [path]) with data.policy as _policy
	}
	held == {
		"calls.builtin", "calls.by_attribute", "calls.by_name",
		"members.top", "modules.top", "names.as_value", "names.bound", "names.builtin", "names.variable",
	} # of a name that is listed, none of these makes it another one
}

test_not_clean_without_a_value if {
	not code_scan.clean with input as _clean with data.policy as {}
	held := {name |
		some name, _ in _policy.code.scan.python
		policy := json.remove(_policy, [["code", "scan", "python", name]])
		code_scan.clean with input as _clean with data.policy as policy
	}
	held == set()
}

_scan(rest) := {"scan": object.union({"language": "python"}, rest)}

_call(id, flags) := {
	"id": id,
	"by_name": "by_name" in flags,
	"by_attribute": "by_attribute" in flags,
	"builtin": "builtin" in flags,
}

test_call_allowed if {
	globals := {"names": [{"id": "globals", "variable": true}]}
	every one in [
		[_call("print", {"by_name", "builtin"}), {}], [_call("own", {"by_name"}), {}],
		[_call("own", {"by_attribute"}), {}], [_call("eval", {"by_attribute"}), {}],
		[_call("system", {"by_name"}), {}],
		[_call("globals", {"by_name", "builtin"}), globals],
	] {
		code_scan.call_allowed(one[0]) with input as _scan(one[1]) with data.policy as _policy
	}
	every one in [
		[_call("eval", {"by_name", "builtin"}), {}], [_call("eval", {"by_name"}), {}],
		[_call("breakpoint", {"by_name", "builtin"}), {}], [_call("system", {"by_attribute"}), {}],
		[_call("system", {"by_attribute", "by_name"}), {}], [_call("", {"by_name"}), {}],
		[_call(1, {"by_name"}), {}], [_call("globals", {"by_name", "builtin"}), {}], [{}, {}],
		[_call("globals", {"by_name", "builtin"}), {"names": [{"id": "globals", "variable": false}]}],
		[_call("globals", {"by_name", "builtin"}), {"names": [{"id": "os", "variable": true}]}],
		[_call("breakpoint", {"by_name", "builtin"}), {"names": [{"id": "breakpoint", "variable": true}]}],
	] {
		not code_scan.call_allowed(one[0]) with input as _scan(one[1]) with data.policy as _policy
	}
}

_name(id, flags) := {
	"id": id,
	"variable": "variable" in flags,
	"as_value": "as_value" in flags,
	"dunder": "dunder" in flags,
	"builtin": "builtin" in flags,
}

test_name_allowed if {
	every found in [
		_name("print", {"variable", "as_value", "builtin"}), _name("own", {"variable", "as_value"}),
		_name("breakpoint", {"variable", "builtin"}), _name("os", {}),
	] {
		code_scan.name_allowed(found) with input as _scan({}) with data.policy as _policy
	}
	every found in [
		_name("os", {"variable"}), _name("globals", {"variable", "builtin"}), _name("", {"variable"}),
		_name("breakpoint", {"variable", "as_value", "builtin"}), _name("__x", {"dunder"}), {}, _name(null, {}),
	] {
		not code_scan.name_allowed(found) with input as _scan({}) with data.policy as _policy
	}
}

test_attribute_allowed if {
	held := {id |
		some id in ["loads", "system", "", 1]
		some dunder in [true, false, null]
		code_scan.attribute_allowed({"id": id, "dunder": dunder}) with input as _clean with data.policy as _policy
	}
	held == {"loads"}
	not code_scan.attribute_allowed({"id": "loads"}) with input as _clean with data.policy as _policy
	not code_scan.attribute_allowed({"id": "loads", "dunder": true}) with input as _clean with data.policy as _policy
}

test_import_allowed if {
	held := {[id, kind] |
		some id in ["json", "odd", "os", "relative", ""]
		some kind in ["module", "relative", "computed", null]
		code_scan.import_allowed({"id": id, "kind": kind}) with input as _clean with data.policy as _policy
	}
	held == {["json", "module"]}
}

_members := {
	"listed": {"id": "json.loads", "top": "json", "module": "json", "name": "loads"},
	"other": {"id": "json.codecs", "top": "json", "module": "json", "name": "codecs"},
	"below": {"id": "json.codecs.loads", "top": "json", "module": "json.codecs", "name": "loads"},
	"of refused": {"id": "os.name", "top": "os", "module": "os", "name": "name"},
	"of nothing": {"id": "re.name", "top": "re", "module": "re", "name": "name"},
	"of a module without a list": {"id": "odd.name", "top": "odd", "module": "odd", "name": "name"},
	"of a number": {"id": "1.name", "top": 1, "module": "1", "name": "name"},
	"nothing": {},
}

test_member_allowed if {
	# regal ignore:line-length
	scan := _with({"imports": [{"id": "json", "kind": "module"}, {"id": "os", "kind": "module"}, {"id": 1}, {"id": "odd"}]})
	held := {name |
		some name, found in _members
		code_scan.member_allowed(found) with input as scan with data.policy as _policy
	}
	held == {"listed", "of refused", "of a module without a list"}
}

test_module_plain if {
	scan := _with({"imports": [{"id": "json", "kind": "module"}, {"id": "os", "kind": "module"}]})
	uses := {
		"plain": {"id": "json", "top": "json", "as_value": false},
		"value": {"id": "json", "top": "json", "as_value": true},
		"refused": {"id": "os", "top": "os", "as_value": true},
		"of nothing": {"id": "re", "top": "re", "as_value": true},
		"unknown": {"id": "json", "top": "json"},
		"nothing": {},
	}
	held := {name |
		some name, found in uses
		code_scan.module_plain(found) with input as scan with data.policy as _policy
	}
	held == {"plain", "refused"}
}

test_kinds if {
	code_scan.literal_allowed({"id": "dunder"}) with input as _clean with data.policy as _policy
	code_scan.computed_allowed({"id": "member_variable"}) with input as _clean with data.policy as _policy
	code_scan.encoding_allowed({"id": "utf-8"}) with input as _clean with data.policy as _policy
	every kind in [{"id": "path"}, {"id": null}, {"id": ""}, {}] {
		not code_scan.literal_allowed(kind) with input as _clean with data.policy as _policy
		not code_scan.computed_allowed(kind) with input as _clean with data.policy as _policy
		not code_scan.encoding_allowed(kind) with input as _clean with data.policy as _policy
	}
}

test_a_denied_name_that_is_a_denied_call_too if {
	both := json.patch(_policy, [{"op": "add", "path": "/code/scan/python/denied_names/-", "value": "eval"}])
	scan := _scan({"names": [{"id": "eval", "variable": true}]})
	not code_scan.call_allowed(_call("eval", {"by_name", "builtin"})) with input as scan with data.policy as both
}

test_reads_are_counted_in_numbers if {
	many := json.patch(_policy, [{"op": "replace", "path": "/code/scan/python/input_reads", "value": "many"}])
	not code_scan.input_read_within with input as _clean with data.policy as many
}

test_input_read_within if {
	held := {[calls, values] |
		some calls in [0, 1, 2, null]
		some values in [0, 1, null]
		scan := _with({"input_calls": calls, "input_values": values})
		code_scan.input_read_within with input as scan with data.policy as _policy
	}
	held == {[0, 0], [1, 0]}
}
