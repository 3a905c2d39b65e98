"""What small rules read: each shape of a statement by itself, in OPA's own plan of it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.binaries import find_binary
from engine.documents.canonical import canonical as as_json
from engine.model import Revisions
from engine.opa.packed import pack
from engine.opa.plan import Plan, Reads
from engine.opa.plan_values import UnknownError
from engine.opa.projection import Projection
from engine.opa.server import Served
from engine.opa.sharing import plan, projection
from engine.policy_bundle.archives import archive

DATA = b'{"table": {"x": 1}, "rows": {}, "limits": {"most": 3, "one": 1.0}, "list": [1, 2], "on": true, "zero": 0}'
SHA = "regex.match(`^[0-9a-f]{64}$`, input.a.sha); input.a.sha == input.b.sha"
ITEM_SHA = "regex.match(`^[0-9a-f]{64}$`, one.sha)"
ITEM = "regex.match(`^[0-9a-f]{64}$`, input.a.x.sha); input.a.x.sha == input.b.sha"
ONE, TWO = "1" * 64, "2" * 64
RULES = {
    "unread": "input.a == 1",
    "named": SHA,
    "named_invalid": SHA,
    "named_key": f"{SHA}; data.policy.table[input.a.sha]",
    "named_member": f"{SHA}; input.a.sha in {{input.c, 1}}",
    "named_listed": f"{SHA}; s := {{x | x := input.a.sha}}; count(s) == 1",
    "named_constant": f'{SHA}; input.a.sha != "{ONE}"',
    "named_value": f"{SHA}; input.a.sha != data.policy.table.x",
    "named_ordered": f"{SHA}; input.a.sha < input.b.sha",
    "named_below": f"{ITEM}; some one in input.a; json.marshal(one)",
    "named_beside": f"every one in input.a {{ {ITEM_SHA} }}; some one in input.a; one.sha == input.b.sha; input.a.x.c",
    "ordered": "input.a < input.b; input.a > 7",
    "ordered_alone": "input.a < input.b",
    "ordered_beside": "every one in input.a { one < input.b }; input.a.x + 1 < 10",
    "ordered_between": "input.a < input.b; input.a > 7; input.b < 20",
    "ordered_items": "every one in input.a { one < input.b; one > 7 }",
    "ordered_sum": "input.a < input.b; input.a + 1 < input.c",
    "ordered_value": "input.a < input.b; input.a < data.policy.limits.most",
    "ordered_alias": "some x in [input.a, data.policy.limits.most]; x < input.b",
    "ordered_constant": "some x in [data.policy.limits.most, input.a]; x < input.b",
    "ordered_by_either": "input.a < input.b; input.a > most",
    "numbers": "data.policy.limits.one == 1; input.a == 1",
    "counted": "count(input.a) == 2",
    "counted_keys": "count(input.a) == 2",
    "counted_beside": "every one in input.a { count(one) == 1 }; input.a.x.c",
    "scanned": "some key, one in input.a; one.b == 1; key",
    "nested": 'every one in input.a { one.b == "x" }',
    "chosen": "input.a[input.b] == 1",
    "empty_rows": "not rows; input.a == 1",
    "whole": "f(input)",
    "either": "is_object(either)",
    "list_or_text": "json.marshal(listed)",
    "one_value": "is_object({one.key: one.value | some one in input.a})",
    "switched_on": "data.policy.on; input.a == 1",
    "zero": "data.policy.zero; input.a == 1",
    "undefined": "not f(data.policy.table.y); input.a == 1",
    "of_opa": "is_object(data.system.bundles); input.a == 1",
    "marshalled": "json.marshal(input)",
    "walked": 'walk(input, [["a", "b"], 1])',
    "marshalled_items": "every one in input.a { json.marshal(one) }",
    "marshalled_beside": "every one in input.a { json.marshal(one) }; input.a.x.c",
    "any_key": "object.get(input, input.b, 1) == 2",
    "any_path": 'object.get(input, ["a", "b"], 1) == 2',
    "comprehended": "count([one | some one in input; one == 1]) == 2",
    "prefix": f'{SHA}; startswith(input.a.sha, "11")',
    "sorted": f"{SHA}; sort([input.a.sha, input.b.sha])[0] == input.a.sha",
    "keyed": f"{SHA}; object.keys({{input.a.sha: 1}})[input.b.sha]",
    "typed": "is_number(input.a.b)",
    "negated": "not input.a.b == 1",
    "item_of_built": "some one in [input.a, input.b]; json.marshal(one)",
    "field_of_built": 'built := {"x": input.a, "y": input.b}; json.marshal(built.x)',
    "field_of_name_read": 'built := {"x": input.a, "y": input.b}; json.marshal(built[input.c])',
    "item_of_object": 'some one in {"x": input.a, "y": input.b}; json.marshal(one)',
    "field_by_name_read": "built := {input.b: input.a}; json.marshal(built.x)",
    "built_marshalled": 'json.marshal({"x": input.a})',
    "list_marshalled": "json.marshal([input.a])",
    "built_key": "json.marshal({input.a: 1})",
    "scanned_value": "some one in data.policy.limits; one == input.a",
    "looked_up": "data.policy.table[input.b] == input.a",
    "looked_up_in_list": "data.policy.list[0] == 1; input.a == 1",
    "looked_up_by_float": "data.policy.list[data.policy.limits.one] == input.a",
    "table": "input.a == data.policy.table",
    "counted_input": "count(input) == 2",
    "items": "some one in input.a; one == 1",
    "marshalled_of_items": "every one in input.a { one.b == 1 }; json.marshal(input.a.x)",
    "counted_of_items": "every one in input.a { one.b == 1 }; count(input.a.x) == 1",
    "named_or_computed": f"{SHA}; some one in [input.b.sha, lower(input.c)]; input.a.sha == one",
    "computed_or_named": f"{SHA}; some one in [lower(input.c), input.b.sha]; input.a.sha == one",
    "null": "input.b == null; json.marshal(input.a)",
    "replaced": "input.a == 1 with input.b as 2",
}
OUTCOME = '{"outcome": "allow"}'
ANSWERS = {"answered": '{"outcome": input.a}', "answered_within": '{"outcome": "allow", "limits": {"most": input.a.b}}'}
HELPERS = """
rows if {
	some row in data.policy.rows
	row == input.b
}

either := input.a if input.c == 1

either := input.b if input.d == 1

most := 7 if input.c == 1

most := 20 if input.d == 1

listed := "none" if input.d == 1

listed := [input.a] if input.c == 1

f(x) if x.a == 1

f(x) if {
	y := x.c
	y.d == 2
}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("rules")
    files = {
        f"admission/compiled/{name}.rego": (
            f"package admission.compiled.{name}\n\nimport rego.v1\n\n"
            f"decision := {ANSWERS.get(name, OUTCOME)} if {{ {body} }}\n{HELPERS}"
        ).encode()
        for name, body in (RULES | dict.fromkeys(ANSWERS, "true")).items()
    }
    (folder / "rules").write_bytes(archive(files, "admission", {}))
    (folder / "values").write_bytes(pack({"policy/data.json": DATA}))
    none = f"sha256:{'0' * 64}"
    served = Served(folder / "rules", folder / "values", Revisions(rules=none, values=none))
    return plan(find_binary(), served, folder / "plan", [*RULES, *ANSWERS])


def canonical(reads: Projection, **facts: object) -> bytes:
    return as_json(reads.canonical({"approvals": [], "budgets": [], "quotas": [], **facts}))


ALIKE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "unread": ({"a": 1, "b": 2}, {"a": 1}),
    "named": ({"a": {"sha": ONE}, "b": {"sha": TWO}}, {"a": {"sha": TWO}, "b": {"sha": ONE}}),
    "ordered": ({"a": 8, "b": 9}, {"a": 100, "b": 900}),
    "ordered_items": ({"a": [8, 9], "b": 10}, {"a": [80, 90], "b": 100}),
    "counted": ({"a": [1, 2]}, {"a": [3, 4]}),
    "scanned": ({"a": [{"b": 1, "c": 1}]}, {"a": [{"b": 1, "c": 2}]}),
    "nested": ({"a": [{"b": "x", "c": 1}]}, {"a": [{"b": "x", "c": 2}]}),
    "empty_rows": ({"a": 1, "b": 1}, {"a": 1, "b": 2}),
    "whole": ({"a": 1, "b": 1, "c": {"d": 1, "e": 1}}, {"a": 1, "b": 2, "c": {"d": 1, "e": 2}}),
}
APART: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "unread": ({"a": 1}, {"a": 2}),
    "named": ({"a": {"sha": ONE}, "b": {"sha": TWO}}, {"a": {"sha": ONE}, "b": {"sha": ONE}}),
    "named_invalid": ({"a": {"sha": ONE}, "b": {"sha": ONE}}, {"a": {"sha": f"{ONE}1"}, "b": {"sha": f"{ONE}1"}}),
    "named_key": ({"a": {"sha": ONE}, "b": {"sha": ONE}}, {"a": {"sha": TWO}, "b": {"sha": TWO}}),
    "named_member": (
        {"a": {"sha": ONE}, "b": {"sha": ONE}, "c": ONE},
        {"a": {"sha": TWO}, "b": {"sha": TWO}, "c": ONE},
    ),
    "named_listed": ({"a": {"sha": ONE}, "b": {"sha": ONE}}, {"a": {"sha": TWO}, "b": {"sha": TWO}}),
    "named_constant": ({"a": {"sha": ONE}, "b": {"sha": ONE}}, {"a": {"sha": TWO}, "b": {"sha": TWO}}),
    "named_value": ({"a": {"sha": ONE}, "b": {"sha": ONE}}, {"a": {"sha": TWO}, "b": {"sha": TWO}}),
    "named_ordered": ({"a": {"sha": ONE}, "b": {"sha": TWO}}, {"a": {"sha": TWO}, "b": {"sha": ONE}}),
    "named_below": ({"a": {"x": {"sha": ONE}}, "b": {"sha": ONE}}, {"a": {"x": {"sha": ONE}}, "b": {"sha": TWO}}),
    "named_beside": (
        {"a": {"x": {"sha": ONE, "c": 1}}, "b": {"sha": ONE}},
        {"a": {"x": {"sha": ONE, "c": 1}}, "b": {"sha": TWO}},
    ),
    "ordered": ({"a": 8, "b": 9}, {"a": 7, "b": 9}),
    "ordered_alone": ({"a": True, "b": 1}, {"a": 1, "b": 1}),
    "ordered_beside": ({"a": {"x": 8}, "b": 9}, {"a": {"x": 9}, "b": 10}),
    "ordered_between": ({"a": 8, "b": 9}, {"a": 8, "b": 90}),
    "ordered_items": ({"a": [8, 9], "b": 10}, {"a": [8, 11], "b": 10}),
    "ordered_sum": ({"a": 8, "b": 9, "c": 9}, {"a": 7, "b": 8, "c": 9}),
    "ordered_value": ({"a": 1, "b": 9}, {"a": 4, "b": 9}),
    "ordered_alias": ({"a": 1, "b": 2}, {"a": 1, "b": 9}),
    "ordered_constant": ({"a": 1, "b": 2}, {"a": 1, "b": 9}),
    "ordered_by_either": ({"a": 8, "b": 9, "d": 1}, {"a": 21, "b": 22, "d": 1}),
    "numbers": ({"a": 1}, {"a": 2}),
    "counted": ({"a": [1, 2]}, {"a": [1]}),
    "counted_keys": ({"a": {"x": 1}}, {"a": {"x": 1, "y": 1}}),
    "counted_beside": ({"a": {"x": {"c": 1}}}, {"a": {"x": {"c": 1, "d": 1}}}),
    "scanned": ({"a": {"k": {"b": 1}}}, {"a": {"l": {"b": 1}}}),
    "nested": ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}),
    "chosen": ({"a": {"x": 1, "y": 2}, "b": "x"}, {"a": {"x": 1, "y": 2}, "b": "y"}),
    "whole": ({"a": 2, "c": {"d": 2}}, {"a": 2, "c": {"d": 3}}),
    "either": ({"a": {"x": 1}, "b": {"x": 1}, "c": 1, "d": 1}, {"a": {"x": 1}, "b": {"x": 2}, "c": 1, "d": 1}),
    "list_or_text": ({"a": {"b": 1}, "c": 1}, {"a": {"b": 2}, "c": 1}),
    "one_value": (
        {"a": [{"key": "x", "value": {"b": 1}}, {"key": "x", "value": {"b": 1}}]},
        {"a": [{"key": "x", "value": {"b": 1}}, {"key": "x", "value": {"b": 2}}]},
    ),
    "zero": ({"a": 1}, {"a": 2}),
    "undefined": ({"a": 1}, {"a": 2}),
    "of_opa": ({"a": 1}, {"a": 2}),
    "marshalled": ({"e": {"f": 1}}, {"e": {"f": 2}}),
    "marshalled_items": ({"a": [{"d": 1}]}, {"a": [{"d": 2}]}),
    "marshalled_beside": ({"a": {"x": {"c": 1, "d": 1}}}, {"a": {"x": {"c": 1, "d": 2}}}),
    "walked": ({"a": {"b": 1}}, {"a": {"b": 2}}),
    "any_key": ({"a": {"x": 1}, "b": "a"}, {"a": {"x": 2}, "b": "a"}),
    "any_path": ({"a": {"b": 1}}, {"a": {"b": 2}}),
    "comprehended": ({"e": 1, "f": 1}, {"e": 1, "f": 2}),
    "prefix": ({"a": {"sha": ONE}, "b": {"sha": ONE}}, {"a": {"sha": TWO}, "b": {"sha": TWO}}),
    "sorted": ({"a": {"sha": ONE}, "b": {"sha": TWO}}, {"a": {"sha": TWO}, "b": {"sha": ONE}}),
    "keyed": ({"a": {"sha": ONE}, "b": {"sha": ONE}}, {"a": {"sha": ONE}, "b": {"sha": TWO}}),
    "negated": ({"a": {"b": 1}}, {"a": {"b": 2}}),
    "item_of_built": ({"a": {"c": 1}, "b": 2}, {"a": {"c": 2}, "b": 2}),
    "field_of_built": ({"a": {"c": 1}, "b": 1}, {"a": {"c": 2}, "b": 1}),
    "field_of_name_read": ({"a": {"d": 1}, "b": 1, "c": "x"}, {"a": {"d": 2}, "b": 1, "c": "x"}),
    "item_of_object": ({"a": {"c": 1}, "b": 2}, {"a": {"c": 2}, "b": 2}),
    "switched_on": ({"a": 1}, {"a": 2}),
    "field_by_name_read": ({"a": {"c": 1}, "b": "x"}, {"a": {"c": 2}, "b": "x"}),
    "built_marshalled": ({"a": {"c": 1}}, {"a": {"c": 2}}),
    "list_marshalled": ({"a": {"c": 1}}, {"a": {"c": 2}}),
    "built_key": ({"a": {"c": 1}}, {"a": {"c": 2}}),
    "scanned_value": ({"a": 3}, {"a": 4}),
    "looked_up": ({"a": 1, "b": "x"}, {"a": 2, "b": "x"}),
    "looked_up_in_list": ({"a": 1}, {"a": 2}),
    "looked_up_by_float": ({"a": 1}, {"a": 2}),
    "table": ({"a": {"x": 1}}, {"a": {"x": 2}}),
    "counted_input": ({"a": 1}, {"a": 1, "b": 1}),
    "items": ({"a": [1]}, {"a": [2]}),
    "marshalled_of_items": ({"a": {"x": {"b": 1, "d": 1}}}, {"a": {"x": {"b": 1, "d": 2}}}),
    "counted_of_items": ({"a": {"x": {"b": 1}}}, {"a": {"x": {"b": 1, "d": 1}}}),
    "named_or_computed": (
        {"a": {"sha": ONE}, "b": {"sha": ONE}, "c": ONE},
        {"a": {"sha": TWO}, "b": {"sha": TWO}, "c": ONE},
    ),
    "computed_or_named": (
        {"a": {"sha": ONE}, "b": {"sha": ONE}, "c": ONE},
        {"a": {"sha": TWO}, "b": {"sha": TWO}, "c": ONE},
    ),
    "null": ({"a": {"c": 1}, "b": None}, {"a": {"c": 2}, "b": None}),
    "answered": ({"a": {"c": 1}}, {"a": {"c": 2}}),
    "answered_within": ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}),
}
LIKE_ONE = [1, -1, 0, True, "1", "01", "1 ", "1\0", None, [], [1], {}, 2**64 + 1, 2**70, 2**70 + 1, 2**70 + 2]
LIKE_TEXT = ["\u00e9", "e\u0301", "\u00c9", "e", "\u0435", "", "null"]


@pytest.mark.parametrize("name", ALIKE)
def test_indistinguishable_inputs_have_one_canonical_form(found: Plan, name: str) -> None:
    one, other = ALIKE[name]
    reads = projection(found, name)
    assert canonical(reads, **one) == canonical(reads, **other)


@pytest.mark.parametrize("name", APART)
def test_distinguishable_inputs_have_different_canonical_forms(found: Plan, name: str) -> None:
    one, other = APART[name]
    reads = projection(found, name)
    assert canonical(reads, **one) != canonical(reads, **other)


def test_similar_values_have_different_canonical_forms(found: Plan) -> None:
    for name in ("unread", "marshalled", "typed"):
        reads = projection(found, name)
        documents = [canonical(reads, a={"b": one} if name == "typed" else one) for one in LIKE_ONE + LIKE_TEXT]
        documents.append(canonical(reads))
        assert len({*documents}) == len(documents)


def test_the_order_of_keys_does_not_change_the_canonical_form(found: Plan) -> None:
    reads = projection(found, "marshalled")
    one, other = ({"x": 1, "y": [2]}, {"y": [2], "x": 1})
    assert canonical(reads, a=one) == canonical(reads, a=other)


def test_points_have_different_canonical_forms(found: Plan) -> None:
    """Also if no rule reads the name of its point: all points have their answers in one place."""
    reads = projection(found, "unread")
    assert canonical(reads, a=1, point="x") != canonical(reads, a=1, point="y")


def test_a_rule_that_replaces_the_input_ends_the_search(found: Plan) -> None:
    with pytest.raises(UnknownError):
        projection(found, "replaced")


@pytest.mark.parametrize("used", ["approvals", "budgets", "quotas"])
def test_an_input_with_consumable_facts_is_never_shared(found: Plan, used: str) -> None:
    reads = projection(found, "unread")
    assert canonical(reads, a=1) != b"null"
    assert canonical(reads, a=1, **{used: [{"id": "x"}]}) == b"null"


def followed(*statements: tuple[str, dict[str, Any]]) -> Reads:
    block = {"stmts": [{"type": kind, "stmt": statement} for kind, statement in statements]}
    plans = {"plans": [{"name": "x", "blocks": [block]}]}
    return Plan({"static": {"strings": []}, "funcs": {"funcs": []}, "plans": plans}, {}).reads("x", {})


@pytest.mark.parametrize("kind", ["WithStmt", "CallDynamicStmt", "ANewStmt"])
def test_a_statement_that_is_not_known_ends_the_search(kind: str) -> None:
    with pytest.raises(UnknownError):
        followed((kind, {}))


INPUT, LIST, OTHER = 0, 2, 3
YES = {"type": "bool", "value": True}
APPEND = ("ArrayAppendStmt", {"array": LIST, "value": YES})


def local(number: int) -> dict[str, Any]:
    return {"type": "local", "value": number}


def test_an_operand_that_is_not_known_ends_the_search() -> None:
    with pytest.raises(UnknownError):
        followed(("AssignVarStmt", {"source": {"type": "new"}, "target": LIST}))


def test_a_merged_object_is_read_as_its_parts_are() -> None:
    merged = ("ObjectMergeStmt", {"a": INPUT, "b": LIST, "target": OTHER})
    assert followed(("MakeObjectStmt", {"target": LIST}), merged, ("ResultSetAddStmt", {"value": OTHER})).whole == {()}


@pytest.mark.parametrize(
    "assigned",
    [
        [("AssignVarStmt", {"source": local(LIST), "target": OTHER})],
        [("AssignVarStmt", {"source": local(INPUT), "target": LIST})],
        [
            ("AssignVarStmt", {"source": local(LIST), "target": OTHER}),
            ("BlockStmt", {"blocks": [{"stmts": [{"type": "MakeArrayStmt", "stmt": {"target": LIST}}]}]}),
        ],
    ],
    ids=["copied", "replaced", "copied and perhaps replaced"],
)
def test_a_container_that_may_have_another_name_ends_the_search_once_it_changes(
    assigned: list[tuple[str, dict[str, Any]]],
) -> None:
    followed(("MakeArrayStmt", {"target": LIST}), APPEND)
    with pytest.raises(UnknownError):
        followed(("MakeArrayStmt", {"target": LIST}), *assigned, APPEND)


def test_a_loop_that_goes_on_ends_the_search(found: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.opa.plan._ROUNDS", 1)
    with pytest.raises(UnknownError):
        projection(found, "scanned")
