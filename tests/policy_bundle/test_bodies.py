"""Which bodies may hold on a missing or wrong fact, and which cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.binaries import find_binary
from engine.errors import Problem
from engine.opa.command import OpaCommand
from engine.policy_bundle.bodies import Lint
from engine.policy_bundle.checks import signatures
from engine.policy_bundle.parsing import Parser

RISKY = {
    "negation": ("not r.revoked", "negates"),
    "negated_block": ("not {\n\tr.a == 1\n\tr.b == 2\n}", "negates"),
    "not_in": ("not r.host in data.policy.hosts.blocked", "negates"),
    "array_comprehension": ("x := [1 | some y in r.l]\nx == r.x", "collects"),
    "set_comprehension": ("count({x | some x in r.l}) == 1", "collects"),
    "object_comprehension": ("{k: 1 | some k in r.l} == r.o", "collects"),
    "set_difference_is_empty": ('{x | some x in r.l} - {"a"} == set()', "collects"),
    "object_get": ('object.get(r, "level", "low") == "low"', "takes a default"),
    "sum": ("is_array(r.l)\nsum(r.l) <= 5", "is 0 for an empty list"),
    "to_number": ("to_number(r.n) == 0", "turns null into 0"),
    "is_null": ("is_null(r.url)", "set to null"),
    "type_name": ('type_name(r.x) != "string"', "returns a name for null"),
    "with": ('r.x == "a" with input.y as 1', "replaces facts"),
    "template": ('$"{r.x}" != "bad"', "prints what is missing"),
    "less": ("r.n < 5", "whose type is not checked"),
    "greater_than_fact": ("input.now > r.n", "compares `input.now`"),
    "unequal": ('r.x != "bad"', "whose type is not checked"),
    "checked_elsewhere": ("is_number(r.m)\nr.n < 5", "compares `r.n`"),
    "checked_negatively": ("not is_string(r.n)\nr.n < 5", "compares `r.n`"),
    "check_of_an_alias_only": ("is_number(r.a)\nx := r.n\nx < 5", "compares `x`"),
    "count_unchecked": ("count(r.l) <= 5", "is_array(r.l)"),
    "comparison_in_every": ("count(r.l) > 0\nevery x in r.l { x < 5 }", "compares `x`"),
    "every_may_be_empty": ("every x in r.l { x == 1 }", "`every` holds for an empty `r.l`"),
    "every_over_other_count": ("is_array(r.m)\ncount(r.m) > 0\nevery x in r.l { x == 1 }", "holds for an empty"),
    "every_over_upper_count": ("count(r.l) < 3\nevery x in r.l { x == 1 }", "holds for an empty"),
    "every_over_count_at_least_none": ("count(r.l) >= 0\nevery x in r.l { x == 1 }", "holds for an empty"),
    "nested_every": ("count(r.l) > 0\nevery x in r.l {\n\tevery y in x { y == 1 }\n}", "holds for an empty `x`"),
    "every_over_values": ("every x in data.policy.l.names { r[x] == 1 }", "holds for an empty"),
    "bare_fact": ("r.exported", "holds for null, 0 and text too"),
    "bare_variable": ("x := r.exported\nx", "holds for null"),
    "bare_count": ("count(r.l)", "holds for null, 0"),
    "bare_helper_value": ("_mode(r)", "write `_mode(r) == true`"),
    "equal_to_null": ("r.url == null", "holds for null"),
    "equal_to_empty_list": ("r.l == []", "was emptied"),
    "equal_to_empty_set": ("r.l == set()", "was emptied"),
    "count_is_none": ("count(r.l) == 0", "was emptied"),
    "none_is_count": ("0 == count(r.l)", "was emptied"),
    "count_of_a_variable_is_none": ("l := r.l\nn := count(l)\nn == 0", "was emptied"),
    "object_union": ('object.union({"level": "low"}, r).level == "low"', "fills in keys"),
    "object_union_n": ('object.union_n([{"level": "low"}, r]).level == "low"', "fills in keys"),
    "object_remove": ('object.remove(r, ["bad"]) == {"a": 1}', "leaves out keys"),
    "object_filter": ('object.filter(r, ["a"]) == {"a": 1}', "leaves out keys"),
    "object_keys": ('some k in object.keys(r)\nk == "a"', "leaves out keys"),
    "json_patch": ('json.patch(r, [{"op": "add", "path": "/a", "value": 1}]).a == 1', "adds what is missing"),
    "json_remove": ('json.remove(r, ["/bad"]) == {"a": 1}', "leaves out paths"),
    "json_filter": ('json.filter(r, ["a"]) == {"a": 1}', "leaves out paths"),
    "array_concat": ("some x in array.concat(r.l, [1])\nx == 1", "fills a list"),
    "graph_reachable": ('"b" in graph.reachable(r.graph, ["a"])', "passes over nodes"),
    "regex_find": ('regex.find_n("bad", r.x, 1) == r.y', "when nothing matches"),
    "regex_unanchored": ('regex.match("good", r.x)', "a part of the text"),
    "regex_begin_only": ('regex.match("^good", r.x)', "a part of the text"),
    "regex_end_only": ('regex.match("good$", r.x)', "a part of the text"),
    "regex_alternatives": ('regex.match("^a|b$", r.x)', "a part of the text"),
    "regex_escaped_end": ("regex.match(`^a\\$`, r.x)", "a part of the text"),
    "regex_lines": ('regex.match("(?m)^a$", r.x)', "a part of the text"),
    "regex_inner_flag": ('regex.match("^(?m:a)$", r.x)', "a part of the text"),
    "regex_of_values": ("regex.match(data.policy.l.pattern, r.x)", "a part of the text"),
    "regex_of_a_fact": ("regex.match(r.pattern, r.x)", "a part of the text"),
    "regex_made": ('regex.match(sprintf("^%s$", [r.y]), r.x)', "a part of the text"),
    "some_of_input": ("some one in input.l\none.ok == true", "when one item of `input.l` does"),
    "some_of_input_with_index": ("some i, one in input.l\none.ok == true\ni == 1", "when one item"),
    "some_of_an_alias": ("l := input.l\nsome one in l\none.ok == true", "when one item"),
    "some_of_a_part_of_an_alias": ("b := input.b\nsome one in b.l\none.ok == true", "when one item"),
    "some_of_a_named_part": ("some one in _records\none.ok == true", "when one item"),
    "any_index": ("input.l[_].ok == true", "when one item"),
    "any_named_index": ("some i\ninput.l[i].ok == true", "when one item"),
    "any_index_below_a_key": ("input.l[r.id][_].ok == true", "when one item"),
    "first_item": ("input.l[0].ok == true", "when one item"),
    "first_of_an_alias": ("l := input.l\nl[0].ok == true", "when one item"),
    "index_in_every": ('every k in ["a", "b"] { input.l[_].k == k }', "when one item"),
    "walk_of_input": ("walk(input.l, [_, v])\nv == 1", "when one item"),
    "function_that_asks_some_item": ("_some_good(input.l)", "when one item"),
    "function_that_asks_some_index": ("_any_good(input.l)", "when one item"),
    "inside_call": ("startswith(object.get(r, `x`, `a`), `a`)", "takes a default"),
}

SAFE = {
    "equal": 'r.x == "a"',
    "equal_facts": "r.sha256 == r.content.sha256",
    "false": "r.remote == false",
    "member": "r.kind in data.policy.sources.kinds",
    "some": 'some x in r.l\nx == "a"',
    "index": 'r.l[_].x == "a"',
    "checked": "is_number(r.n)\nr.n < 5",
    "checked_after": "r.n < 5\nis_number(r.n)",
    "checked_by_value": 'r.mode == "a"\nr.mode != "b"',
    "checked_by_builtin": 'startswith(r.x, "a")\nr.x != "ab"',
    "checked_through_variable": "x := r.n\nis_number(x)\nx < 5",
    "variable_of_checked": "x := r.n\nis_number(r.n)\nx < 5",
    "arithmetic": "input.now - r.n <= 5",
    "values": "is_number(r.n)\nr.n <= data.policy.limits.most",
    "counted": "is_array(r.l)\ncount(r.l) <= 5",
    "counted_iterated": "count(r.l) <= 5\nsome x in r.l\nx == 1",
    "counted_split": 'parts := split(r.x, ".")\ncount(parts) == 2',
    "every_counted": 'count(r.l) > 0\nevery x in r.l { x == "a" }',
    "every_counted_backwards": '0 < count(r.l)\nevery x in r.l { x == "a" }',
    "every_counted_variable": 'n := count(r.l)\nn >= 1\nevery x in r.l { x == "a" }',
    "every_of_some": 'some x in r.l\nevery y in r.l { y == "a" }\nx == "a"',
    "every_literal": 'every k in ["a", "b"] { r[k] == 1 }',
    "every_checked_inside": "count(r.l) > 0\nevery x in r.l {\n\tis_number(x)\n\tx < 5\n}",
    "every_checked_outside": "is_number(r.n)\ncount(r.l) > 0\nevery x in r.l { x == r.n }",
    "nested_every": "count(r.l) > 0\nevery x in r.l {\n\tcount(x) > 0\n\tevery y in x { y == 1 }\n}",
    "helper": "_is(r)",
    "helper_value": '_mode(r) == "a"',
    "comparison_of_counted_lists": "is_array(r.l)\nis_array(r.m)\ncount(r.l) == count(r.m)",
    "regex": 'regex.match("^a$", r.x)',
    "regex_alternatives": 'regex.match("^(a|b[|])$", r.x)',
    "regex_escapes": "regex.match(`^a\\|b\\\\$`, r.x)",
    "some_of_values": "some one in data.policy.l.names\none == r.x",
    "every_of_input": "count(input.l) > 0\nevery one in input.l { one.ok == true }",
    "member_of_input": '"a" in input.l',
    "key_of_input": "input.m[r.id] == 1",
    "chosen_key_of_input": 'some k in ["a", "b"]\ninput.m[k] == 1',
    "only_item": "count(input.l) == 1\ninput.l[0].ok == true",
    "function_of_input": "_is(input.l)",
    "count_of_values_is_none": "count(data.policy.l.names) == 0",
}

HELPERS = {
    "default": ("default _x := 1", "gives a value when facts are missing"),
    "set": ("_x contains y if some y in input.l", "is empty, not undefined"),
    "object": ("_x[k] := 1 if some k in input.l", "is empty, not undefined"),
    "else": ("_x(r) := 1 if {\n\tr.a == 1\n} else := 2", "`else` is reached"),
    "else_body": ("_x(r) := 1 if {\n\tr.a == 1\n} else := 2 if {\n\tnot r.b\n}", "negates"),
    "value": ("_x(r) := r.n < 5", "whose type is not checked"),
    "shadowed_rule": ("_x(_is) if _is", "holds for null"),
    "value_collects": ("_x(r) := [y | some y in r.l]", "collects"),
}
SAFE_HELPERS = {
    "value": "_x(r) := r.license.alternatives",
    "checked_value": "_x(r) := r.n < 5 if is_number(r.n)",
    "difference": "_x(r) := input.now - r.n",
}


def _indented(text: str) -> str:
    return "\n".join(f"\t{line}" for line in text.splitlines())


@pytest.fixture(scope="module")
def risks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Problem]]:
    """The risks of every rule of this file, by kind and name; parsed in one go."""
    bodies = {f"risky/{name}": body for name, (body, _) in RISKY.items()}
    bodies |= {f"safe/{name}": body for name, body in SAFE.items()}
    texts = {name: f"_rule(r) if {{\n{_indented(body)}\n}}" for name, body in bodies.items()}
    texts |= {f"helper/{name}": text for name, (text, _) in HELPERS.items()}
    texts |= {f"safe_helper/{name}": text for name, text in SAFE_HELPERS.items()}
    common = "_is(r) if r.a == 1\n\n_mode(r) := r.mode\n\n_records := input.l\n"
    common += "\n_some_good(l) if {\n\tsome one in l\n\tone.ok == true\n}\n\n_any_good(l) if l[_].ok == true\n"
    files = {
        name: f"package a.p{number}\n\nimport future.keywords.not\n\n{text}\n\n{common}".encode()
        for number, (name, text) in enumerate(texts.items())
    }
    opa = OpaCommand(find_binary().path)
    problems: list[object] = []
    modules = Parser(opa, tmp_path_factory.mktemp("bodies")).parse(files, problems)  # type: ignore[arg-type]
    assert not problems
    lint = Lint(signatures(opa.capabilities()), modules.values())

    def found(name: str) -> Iterator[Problem]:
        for rule in modules[name].rules:
            if rule.name in {"_rule", "_x"}:
                yield from lint.risks(modules[name], rule)

    return {name: list(found(name)) for name in modules}


@pytest.mark.parametrize("name", RISKY)
def test_risky(name: str, risks: dict[str, list[Problem]]) -> None:
    found = risks[f"risky/{name}"]
    assert any(RISKY[name][1] in f"{one.message} {one.remedy}" for one in found), found
    assert all((one.where.line or 0) > 5 for one in found)


@pytest.mark.parametrize("name", SAFE)
def test_safe(name: str, risks: dict[str, list[Problem]]) -> None:
    assert risks[f"safe/{name}"] == []


@pytest.mark.parametrize("name", HELPERS)
def test_risky_helper(name: str, risks: dict[str, list[Problem]]) -> None:
    assert any(HELPERS[name][1] in one.message for one in risks[f"helper/{name}"]), risks[f"helper/{name}"]


@pytest.mark.parametrize("name", SAFE_HELPERS)
def test_safe_helper(name: str, risks: dict[str, list[Problem]]) -> None:
    assert risks[f"safe_helper/{name}"] == []


def test_the_line_is_that_of_the_condition(tmp_path: Path) -> None:
    text = b"package a\n\nok(r) if {\n\tr.a == 1\n\tr.n < 5\n}\n"
    opa = OpaCommand(find_binary().path)
    module = Parser(opa, tmp_path).parse({"x.rego": text}, [])["x.rego"]
    lint = Lint(signatures(opa.capabilities()), [module])
    assert [one.where.line for one in lint.risks(module, module.rules[0])] == [5]
