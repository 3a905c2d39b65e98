"""Conditions that are written out mean exactly what a call of the author's rule means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.policy_bundle import generate
from tests.policy_bundle.trees import REQUIREMENTS, Served, requirement, served, source, topic

BODIES = {
    "some_every": "some options in item.options\ncount(options) > 0\nevery key in options { _admitted(key) }",
    "nested": "count(item.options) > 0\nevery options in item.options {\n\tcount(options) > 0\n"
    '\tevery key in options {\n\t\tis_string(key)\n\t\tkey != ""\n\t}\n}',
    "values": 'data.policy.licenses.licenses[item.license] == "admit"',
    "helper": "_small(item)",
    "library": "words.known(item.license, `x`)",
    "constant_helper": "_purpose in item.purposes",
    "objects": '{"a": item.a, "b": [item.b]} == item.ab',
    "arithmetic": "input.now - item.then <= 100",
    "unification": "[first, second] = item.pair\nfirst == second",
    "assignment": "[first, second] := item.pair\nn := first + second\nn > 3",
    "wildcard": "item.options[_][_] == item.license\nitem.pair[_] == 2",
    "implicit_variable": "item.pair[i] == i",
    "one_line": "item.a == 1",
    "several_lines": 'object.keys(item.ab) == {\n\t"a",\n\t"b",\n}',
    "raw_lines": "item.license == `M\nIT`",
    "negation": "not item.revoked",
    "negated_block": "not {\n\titem.a == 1\n\titem.b == 2\n}",
    "comprehension": "[key | some options in item.options; some key in options] == item.flat",
    "replaced": "_now == 7 with input.now as item.a",
    "other_name": "item.license == item.id",
}
"""Bodies of all shapes; each is a requirement of its own, the risky ones with a proof."""

CALLED = {"implicit_variable", "library", "raw_lines", "unification"}
"""Not declared for certain, or with raw strings: these are called in both forms."""


def _text() -> str:
    proof = "proof: only a test of forms"
    rules = [requirement(f"{name}(item)", body, more=proof) for name, body in BODIES.items()]
    rules.append(requirement("two_definitions(item)", "item.a == 1"))
    rules.append("two_definitions(record) if {\n\trecord.b == 2\n\tsome item in record.pair\n\titem == 3\n}")
    rules.append("two_definitions(record) if record.c == 3")
    rules.append(requirement("whole", 'input.bundle.purpose == "train"'))
    rules.append("whole if _purpose == input.bundle.other")
    rules.append('_admitted(key) if data.policy.licenses.licenses[key] == "admit"')
    rules.append("_small(thing) if {\n\tis_number(thing.a)\n\tthing.a < 5\n}")
    rules.append("_purpose := input.bundle.purpose")
    rules.append("_now := input.now")
    return topic(*rules, imports="import data.admission.lib.words\n")


TREE = {
    f"{REQUIREMENTS}/license.rego": _text(),
    "rego/admission/lib/words.rego": "package admission.lib.words\n\nimport future.keywords.not\n\n"
    "known(text, _) if startswith(text, `M`)\n",
}
GOOD: dict[str, Any] = {
    "id": "MIT",
    "license": "MIT",
    "options": [["MIT"], ["MIT", "X"]],
    "purposes": ["train"],
    "a": 1,
    "b": 2,
    "c": 3,
    "ab": {"a": 1, "b": [2]},
    "then": 1_699_999_999,
    "pair": [2, 2],
    "flat": ["MIT", "MIT", "X"],
    "revoked": False,
}
ODD: list[Any] = [None, True, False, 0, 1, "", "MIT", [], {}, [[]], [0, 1], {"a": 1}]


def _mutations() -> Iterator[Any]:
    yield GOOD
    yield from ODD
    for key in GOOD:
        yield {name: value for name, value in GOOD.items() if name != key}
        for odd in ODD:
            yield {**GOOD, key: odd}
            for other in ("a", "options", "pair"):
                yield {**GOOD, key: odd, other: odd}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Served, Served]:
    """The same policy with conditions written out, and with every rule called."""
    inlined = served(tmp_path_factory.mktemp("written"), TREE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "written_out", lambda _: False)
        called = served(tmp_path_factory.mktemp("called"), TREE)
    return inlined, called


def test_inlined_and_called_forms_differ(both: tuple[Served, Served]) -> None:
    """Otherwise agreement would show nothing. What cannot be written out for certain is called in both."""
    inlined, called = (one.bundle.module("source") for one in both)
    for name in [*BODIES, "two_definitions"]:
        assert f"{name}(__item) == true" in called
        assert (f"{name}(__item) == true" in inlined) == (name in CALLED)


def test_both_forms_agree(both: tuple[Served, Served]) -> None:
    items = list(_mutations())
    documents = [source([item], other=other) for item in items for other in ("train", 1)]
    documents += [source(records, purpose=odd) for odd in ODD for records in ([GOOD, {}], odd)]
    answers, expected = (one.ask_all(documents) for one in both)
    assert len(answers) == len(documents) > 1000
    for document, answer, wanted in zip(documents, answers, expected, strict=True):
        assert answer == wanted, document
    found = {finding["code"] for answer in answers for finding in answer["findings"]}
    assert found >= {*BODIES, "two_definitions"}
    held = [finding["code"] for finding in answers[0]["findings"]]
    assert set(held) == {"implicit_variable", "negated_block", "raw_lines", "replaced"}


def test_a_condition_that_does_not_parse_back_is_called(tmp_path: Path) -> None:
    """The guard behind the guard: written-out conditions are parsed again and compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "_body", lambda _module, _rule: "\t\tinput.now > 0")
        text = served(tmp_path, TREE).bundle.module("source")
    assert "values(__item) == true" in text
