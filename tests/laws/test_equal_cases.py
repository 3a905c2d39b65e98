"""Law 10: OPA decides every distinct case. What no rule can distinguish has one decision, at every point."""

from __future__ import annotations

import hashlib
import os
import random
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import find_binary
from engine.cases.run import CaseFile, Runner
from engine.documents.canonical import canonical
from engine.engine import Engine
from engine.errors import DecideError
from engine.opa.packed import pack, unpacked
from engine.opa.plan import Plan
from engine.opa.projection import MUST_BE_EMPTY, Projection
from engine.opa.sharing import plan, projection, reads
from engine.points.registry import POINTS
from tests.laws.asking import DECIDED, taken
from tests.laws.mutations import DROPPED, WRONG, Path_, get, paths, with_value

_FOUND: dict[str, Projection] = {}
_SEED = 11
_ERROR = "a built-in refuses"
_AT_ONCE = 8
"""Inputs of one question: one in fifty has a built-in that refuses it, and then all of them are asked again."""

_PART = 1_000
"""Inputs that are compared at a time: all of a million would not fit into memory."""

STOP = {"id": "stop", "scope": "all", "name": "", "principal": "", "tool": ""}
UNSEEN = {*((point, "now") for point in POINTS), *((point, "flows") for point in POINTS), ("tool_call", "environment")}
"""Facts that change no case: what expires is an approval, and no other case has a flow, or tools of an environment."""


@cache
def _cases(point: str) -> list[CaseFile]:
    return [file for file in DECIDED if file.case.point == point and not file.case.values]


@pytest.fixture
def engine(runner: Runner) -> Engine:
    return runner.engine({})


Finding = Callable[[str], Projection]


@pytest.fixture
def found(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Finding:
    """What a point of the policy of this tree reads, found once."""

    def find(point: str) -> Projection:
        if point not in _FOUND:
            served = engine.opa.server.served  # type: ignore[union-attr]
            _FOUND[point] = reads(find_binary(), served, tmp_path_factory.mktemp("plan"), point)
        return _FOUND[point]

    return find


def decided(engine: Engine, documents: Sequence[dict[str, Any]]) -> list[Any]:
    """OPA's whole decision on each input; `_ERROR` where a built-in refuses one."""
    if len(documents) > _AT_ONCE:
        parts = [documents[at : at + _AT_ONCE] for at in range(0, len(documents), _AT_ONCE)]
        return [one for part in parts for one in decided(engine, part)]
    try:
        reply: list[Any] = engine.opa.ask("decisions", {"items": list(documents)}).result
    except DecideError as error:
        if error.code != "engine.opa_error":
            raise
        middle = len(documents) // 2
        return decided(engine, documents[:middle]) + decided(engine, documents[middle:]) if middle else [_ERROR]
    return reply


def changed(document: dict[str, Any], fields: Sequence[Path_], numbers: random.Random) -> dict[str, Any]:
    """The input with one to three of its fields dropped, of another type, or like another field of it."""
    made = document
    for _ in range(numbers.randint(1, 3)):
        path, other = numbers.choice(fields), get(document, numbers.choice(fields))
        try:
            present = get(made, path)
        except (LookupError, TypeError):  # it went with a field above it
            path = numbers.choice(_fields(made))
            present = get(made, path)
        value = numbers.choice([DROPPED, *WRONG, other, other, *_near(present, numbers)])
        made = with_value(made, path, value)
    return made


def _fields(document: dict[str, Any]) -> list[Path_]:
    return [path for path in paths(document) if path != ("point",) and path[0] not in MUST_BE_EMPTY]


def _near(value: Any, numbers: random.Random) -> list[Any]:
    """Two values that are easily taken for this one."""
    found: list[Any] = [value]
    match value:
        case bool():
            found = [not value, int(value), str(value).lower()]
        case int():
            found = [value + 1, value - 1, value + 86_400, value - 86_400, float(value), -value, str(value)]
            found += [value + 2**64, value == 1, -0.0]
        case float():
            found = [-value, int(value), value + 1]
        case str():
            found = [value[::-1], value.upper(), value + "x", f"{numbers.getrandbits(256):064x}", [value], value + "\0"]
            found += [value + unicodedata.normalize(form, "\u00e9") for form in ("NFC", "NFD")]
        case list():
            found = [value[::-1], value * 2, [*value, None], value[:-1], {str(at): one for at, one in enumerate(value)}]
        case dict():
            found = [dict(reversed(value.items())), {**value, "surprise": 1}, {**value, "": {}}, [value], [*value]]
    return numbers.choices(found, k=2)


def generated(
    engine: Engine, runner: Runner, point: str, count: int, known: Callable[[Any], object] = lambda _: True
) -> Iterator[dict[str, Any]]:
    """The inputs of all cases, also with a stop, and so many others that are made of those which are `known`."""
    numbers = random.Random(f"{_SEED} {point}")  # noqa: S311  (no secret)
    documents = [taken(runner, file)[1] for file in _cases(point)]
    assert engine is runner.engine({})
    yield from documents
    yield from ({**one, "stops": [STOP]} for one in documents)
    sources = [(one, _fields(one)) for one in documents if known(one)]
    seen: set[bytes] = set()
    while len(seen) < count:
        made = changed(*numbers.choice(sources), numbers)
        if (key := _digest(made)) not in seen:
            seen.add(key)
            yield made


def _digest(value: Any) -> bytes:
    return hashlib.sha256(canonical(value)).digest()


def compared(engine: Engine, read: Projection, documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The inputs that are decided differently from what stands for them; OPA is asked every distinct document."""
    answers: dict[bytes, bytes] = {}
    differing: list[dict[str, Any]] = []
    waiting = iter(documents)
    while part := list(islice(waiting, _PART)):
        pairs = [(one, same) for one in part if (same := read.canonical(one)) is not None]
        keys = [(_digest(one), _digest(same)) for one, same in pairs]
        asked = {key: one for pair, both in zip(pairs, keys, strict=True) for key, one in zip(both, pair, strict=True)}
        fresh = {key: one for key, one in asked.items() if key not in answers}
        answers |= zip(fresh, map(_digest, decided(engine, [*fresh.values()])), strict=True)
        differing += [one for (one, _), (was, now) in zip(pairs, keys, strict=True) if answers[was] != answers[now]]
    return differing


@pytest.mark.parametrize("point", POINTS)
def test_10_indistinguishable_inputs_are_decided_alike(
    engine: Engine, found: Finding, runner: Runner, point: str
) -> None:
    read = found(point)
    assert not compared(engine, read, generated(engine, runner, point, 5))


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS)
def test_10_many_indistinguishable_inputs_are_decided_alike(
    engine: Engine, found: Finding, runner: Runner, point: str
) -> None:
    """With `EQUAL_CASES=27000` a million in all."""
    read = found(point)
    count = int(os.environ.get("EQUAL_CASES", "1000"))
    assert not compared(engine, read, generated(engine, runner, point, count, read.canonical))


@pytest.mark.parametrize("point", POINTS)
def test_10_a_fact_missing_from_the_projection_is_detected(
    engine: Engine, found: Finding, runner: Runner, point: str
) -> None:
    """The control: without one thing that rules read, the comparison above finds differing decisions."""
    read = found(point)
    documents = [*generated(engine, runner, point, 20)]
    same = [canonical for one in documents if (canonical := read.canonical(one)) is not None]
    whole = decided(engine, same)
    names = sorted(read.facts - {"point", *MUST_BE_EMPTY})
    holed = [[{key: value for key, value in one.items() if key != name} for one in same] for name in names]
    answers = decided(engine, [one for each in holed for one in each])
    unseen = [name for at, name in enumerate(names) if answers[at * len(same) : (at + 1) * len(same)] == whole]
    assert {(point, name) for name in unseen} <= UNSEEN


def test_10_rules_of_other_points_are_not_looked_at(engine: Engine, tmp_path: Path) -> None:
    """OPA would plan them too, and all other threads would wait while so large a plan is read."""
    reads(find_binary(), engine.opa.server.served, tmp_path, "license")  # type: ignore[union-attr]
    assert not [*tmp_path.glob("*/admission/requirements/source/*")]
    assert [*tmp_path.glob("*/admission/requirements/license/*")]


def with_rule(engine: Engine, folder: Path, points: Collection[str], condition: str) -> Plan:
    """The plan of the policy with one more finding at each of these points, under this condition."""
    served = engine.opa.server.served  # type: ignore[union-attr]
    files = unpacked(served.rules.read_bytes(), "rules")
    for point in points:
        name = next(one for one in files if one.startswith(f"admission/requirements/{point}/"))
        rule = f'\n_findings contains data.admission.compiled.{point}.finding("x", null) if {condition}\n'
        files[name] += rule.encode()
    (folder / "rules").write_bytes(pack(files))
    return plan(find_binary(), replace(served, rules=folder / "rules"), folder / "plan", points)


@pytest.fixture(scope="module")
def one_more(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The plan of the policy of this tree with a rule at each point that reads a fact which no other does."""
    return with_rule(runner.engine({}), tmp_path_factory.mktemp("more"), POINTS, 'input.surprise == "a"')


@pytest.mark.parametrize("point", POINTS)
def test_10_a_rule_that_reads_a_further_fact_distinguishes_it(
    found: Finding, one_more: Plan, runner: Runner, point: str
) -> None:
    document = taken(runner, _cases(point)[0])[1]
    documents = [{**document, **{key: [] for key in MUST_BE_EMPTY}, "surprise": text} for text in ("a", "b")]
    one, other = map(found(point).canonical, documents)
    assert one is not None
    assert one == other
    one, other = map(projection(one_more, point).canonical, documents)
    assert one != other


def test_10_a_rule_that_reads_a_further_field_distinguishes_it(
    engine: Engine, found: Finding, runner: Runner, tmp_path: Path
) -> None:
    document = next(taken(runner, file)[1] for file in _cases("license"))
    documents = [{**document, "content": {**document["content"], "media_type": text}} for text in ("a", "b")]
    one, other = map(found("license").canonical, documents)
    assert one == other
    more = with_rule(engine, tmp_path, ["license"], 'input.content.media_type == "a"')
    one, other = map(projection(more, "license").canonical, documents)
    assert one != other
