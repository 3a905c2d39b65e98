"""Lanes: `scripts/test` runs the fast tests, `scripts/test --slow` the slow ones, `scripts/test --all` every test.

Slow are the tests that tests/slow.txt names: each costs a third of a second or more. CI runs them too. What is marked
`full` is in neither lane; `full(after=1)` on a test with parameters leaves out all but the first of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

Item = TypeVar("Item")

FULL, FAST = "full", "fast"
"""Profiles of Hypothesis, one for each lane."""


SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split())
"""The tests of the slow lane, by node id without parameters."""


class Lanes(NamedTuple):
    """All tests, each in one lane."""

    fast: list[pytest.Item]
    slow: list[pytest.Item]
    full: list[pytest.Item]


def covering(items: Iterable[Item], kinds: Callable[[Item], Iterable[Hashable]]) -> list[Item]:
    """Every item that has a kind which none before it has."""
    found: list[Item] = []
    seen: set[Hashable] = set()
    for item in items:
        if fresh := {*kinds(item)} - seen:
            found.append(item)
            seen |= fresh
    return found


def first_of(items: Iterable[Item], kind: Callable[[Item], Hashable]) -> list[Item]:
    """The first item of each kind."""
    return covering(items, lambda item: (kind(item),))


def examples(most: int) -> int:
    """How many examples a property is tried with: all of them with `--all`, a sixth of them in the fast lane."""
    return most if settings.get_current_profile_name() == FULL else max(most // 6, 10)


def lane(items: Iterable[Item], kinds: Callable[[Item], Iterable[Hashable]]) -> list[ParameterSet]:
    """Parameters of a test: the fast lane has each kind once, the other items are marked `full`."""
    every = list(items)
    first = {id(item) for item in covering(every, kinds)}
    return [pytest.param(item, marks=() if id(item) in first else pytest.mark.full) for item in every]


def split(items: list[pytest.Item]) -> Lanes:
    """The lane of each test."""
    lanes = Lanes([], [], [])
    marked: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("full")
        name = item.nodeid.partition("[")[0]
        marked[name] += mark is not None
        if mark is not None and marked[name] > mark.kwargs.get("after", 0):
            lanes.full.append(item)
        else:
            (lanes.slow if name in SLOW else lanes.fast).append(item)
    return lanes
