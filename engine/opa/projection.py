"""Inputs that no rule can distinguish: without what is not read, and with equal names for what is only compared.

Values that rules compare only with each other may have other names as long as equal ones stay equal; times that rules
only order may be other times in the same order. Which these are follows from the plan, never from a list. So two inputs
with the same canonical form have the same decision, and OPA has to be asked once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from engine.opa.plan import COMPARISONS, Reads, Use
from engine.opa.plan_values import EACH, Path

MUST_BE_EMPTY: Final = ("approvals", "budgets", "quotas")
"""Facts that are used up: a request that brings any of them is decided on its own."""

_IS_SHA256: Final = Use("regex.match", constant=("str", "^[0-9a-f]{64}$"))
_NAME: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_EQUALITY: Final = frozenset({"equal", "neq"})


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Paths whose values may be renamed together: `ordered` above the floor, or as names of SHA-256."""

    paths: frozenset[Path]
    ordered: bool
    floor: int = 0

    def names(self, values: Sequence[Any]) -> Mapping[Any, Any] | None:
        """Other names for these values; None if one of them is of another kind."""
        if self.ordered:
            if not all(type(one) is int and one > self.floor for one in values):
                return None
            return {one: self.floor + rank for rank, one in enumerate(sorted(set(values)), 1)}
        if not all(isinstance(one, str) and _NAME.fullmatch(one) for one in values):
            return None
        distinct = dict.fromkeys(values)
        return dict(zip(distinct, _names(len(distinct)), strict=True))


@dataclass(slots=True)
class _Node:
    below: dict[str, _Node] = field(default_factory=dict)
    whole: bool = False
    keys: bool = False
    group: _Group | None = None


_Found = dict[_Group, list[tuple[Any, str | int]]]
"""Places in a pruned input whose values may be renamed, in the order in which they were met."""


class Projection:
    """What one decision point reads."""

    def __init__(self, reads: Reads) -> None:
        self.groups = tuple(_groups(reads))
        self._root = _Node({"point": _Node()})
        for path in reads.uses:
            node = self._root
            for key in path:
                node = node.below.setdefault(key, _Node())
            node.whole, node.keys = path in reads.whole, path in reads.keys
            node.group = next((one for one in self.groups if path in one.paths), None)
        _merge_each(self._root)

    @property
    def facts(self) -> frozenset[str]:
        """The names of the facts of which anything is read."""
        return frozenset(self._root.below)

    def canonical(self, document: Mapping[str, Any]) -> dict[str, Any] | None:
        """The input that stands for all that rules cannot distinguish from this one; None if it stands for itself."""
        if any(document.get(name) != [] for name in MUST_BE_EMPTY):
            return None
        found: _Found = {}
        pruned: dict[str, Any] = dict(document) if self._root.whole else _pruned(document, self._root, found)
        for group, places in found.items():
            if (names := group.names([holder[key] for holder, key in places])) is not None:
                for holder, key in places:
                    holder[key] = names[holder[key]]
        return pruned


@lru_cache(maxsize=64)
def _names(count: int) -> tuple[str, ...]:
    """So many SHA-256 that differ."""
    return tuple(f"{number:064x}" for number in range(count))


def _pruned(value: Any, node: _Node, found: _Found) -> Any:
    """A copy of what is read of a container. Scalars stay, lists keep their length, objects the keys looked at."""
    each = node.below.get(EACH)
    if isinstance(value, list):
        return [None] * len(value) if each is None else _with_items([None] * len(value), value, each, found)
    if each is not None or node.keys:
        return _with_fields(dict.fromkeys(value), value, {key: node.below.get(key, each) for key in value}, found)
    return _with_fields({}, value, node.below, found)


def _with_items(copy: list[Any], value: list[Any], kept: _Node, found: _Found) -> list[Any]:
    for at, one in enumerate(value):
        copy[at] = one if kept.whole or not isinstance(one, (dict, list)) else _pruned(one, kept, found)
        if kept.group is not None:
            found.setdefault(kept.group, []).append((copy, at))
    return copy


def _with_fields(
    copy: dict[str, Any], value: dict[str, Any], fields: Mapping[str, _Node | None], found: _Found
) -> dict[str, Any]:
    for key, kept in fields.items():
        if kept is not None and key in value:
            one = value[key]
            copy[key] = one if kept.whole or not isinstance(one, (dict, list)) else _pruned(one, kept, found)
            if kept.group is not None:
                found.setdefault(kept.group, []).append((copy, key))
    return copy


def _merge_each(node: _Node) -> None:
    """Let every named key be read as the items of its object are, too."""
    each = node.below.get(EACH)
    for kept in node.below.values():
        if each is not None:
            _merge(kept, each)
        _merge_each(kept)


def _merge(node: _Node, other: _Node) -> None:
    node.whole, node.keys, node.group = node.whole or other.whole, node.keys or other.keys, node.group or other.group
    for key, kept in other.below.items():
        _merge(node.below.setdefault(key, _Node()), kept)


def _groups(reads: Reads) -> Iterator[_Group]:
    """Paths that are only ordered among themselves and against whole numbers, or only compared as SHA-256."""

    def orders(use: Use, left: Container[Path | None]) -> bool:
        whole = use.constant is not None and use.constant[0] == "int"
        return use.by in COMPARISONS and (use.other in left or whole)

    def names(use: Use, left: Container[Path | None]) -> bool:
        return use == _IS_SHA256 or (use.by in _EQUALITY and use.other in left)

    for paths in _connected(reads, _closed(reads, orders)):
        uses = [use for path in paths for use in reads.uses[path]]
        if any(use.other is not None and use.by not in _EQUALITY for use in uses):
            constants = (use.constant[1] for use in uses if use.constant is not None)
            yield _Group(paths, ordered=True, floor=max(constants, default=0))
    for paths in _connected(reads, _closed(reads, names)):
        if any(_IS_SHA256 in reads.uses[path] for path in paths):
            yield _Group(paths, ordered=False)


def _closed(reads: Reads, fits: Callable[[Use, Container[Path | None]], bool]) -> frozenset[Path]:
    """The largest set of paths all of whose uses fit among themselves."""
    left = frozenset(path for path in reads.uses if _alone(path, reads))
    while True:
        fitting = frozenset(path for path in left if all(fits(use, left) for use in reads.uses[path]))
        if fitting == left:
            return left
        left = fitting


def _connected(reads: Reads, paths: frozenset[Path]) -> Iterator[frozenset[Path]]:
    """The parts of these paths that are compared with each other."""
    left = set(paths)
    while left:
        part, waiting = set[Path](), [min(left)]
        while waiting:
            path = waiting.pop()
            part.add(path)
            waiting += [use.other for use in reads.uses[path] if use.other is not None and use.other not in part]
        left -= part
        yield frozenset(part)


def _alone(path: Path, reads: Reads) -> bool:
    """Whether nothing is read above this path as a whole, below it, or by another name of the same place."""
    below: Iterator[Path] = (one for one in reads.uses if one != path and len(one) >= len(path))
    above: Iterator[Path] = (one for one in reads.whole if len(one) < len(path))
    return not any(
        all(mine == theirs or EACH in (mine, theirs) for mine, theirs in zip(path, one, strict=False))
        for one in (*below, *above)
    )
