"""Two lanes: `scripts/test` leaves out what is marked `full`, `scripts/test --all` runs everything.

`full(after=1)` on a test with parameters keeps the first of them in the fast lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

Item = TypeVar("Item")

FULL, FAST = "full", "fast"
"""Profiles of Hypothesis, one for each lane."""


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


def split(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests of the fast lane, and those that it leaves out."""
    fast: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    marked: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("full")
        name = item.nodeid.partition("[")[0]
        marked[name] += mark is not None
        chosen = fast if mark is None or marked[name] <= mark.kwargs.get("after", 0) else left_out
        chosen.append(item)
    return fast, left_out
