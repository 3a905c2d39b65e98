"""Values that stand for all inputs at once: what a variable of a plan may hold.

A value of the policy is known, a value of the input is known by its path only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Path = tuple[str, ...]
"""Keys from the input down; `EACH` for the items of a list and for keys that are not known."""

EACH: Final = "*"

_DEPTH = 24


class UnknownError(Exception):
    """A statement whose reads are unknown."""


@dataclass(frozen=True, slots=True)
class Known:
    """A value of the policy; containers are equal only to themselves."""

    value: Any
    key: Any

    @classmethod
    def of(cls, value: Any) -> Known:
        """This value; scalars are equal by type and value."""
        scalar = not isinstance(value, (dict, list))
        return cls(value, (type(value).__name__, value) if scalar else id(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Value:
    """What a variable may hold: one known value, or parts of the input, or what was built of either.

    `computed`: or anything that follows from what was read before.
    """

    known: Known | None = None
    paths: frozenset[Path] = frozenset()
    fields: tuple[tuple[str, Value], ...] = ()
    item: Value | None = None
    computed: bool = False

    @property
    def built(self) -> bool:
        """Whether rules put anything into it."""
        return bool(self.fields) or self.item is not None

    @property
    def scalar(self) -> tuple[str, Any] | None:
        """The type and value of a known scalar."""
        return self.known.key if self.known is not None and isinstance(self.known.key, tuple) else None


COMPUTED = Value(computed=True)
EMPTY = Value()
"""A container to which nothing was added yet."""


def constant(value: Any) -> Value:
    """A value of the policy."""
    return Value(Known.of(value))


def joined(one: Value | None, other: Value | None, depth: int = 0) -> Value:
    """What may be either. Raises UnknownError for a value without an end."""
    if one is None or other is None or one == other:
        return one or other or COMPUTED
    if depth > _DEPTH:
        raise UnknownError("a value without an end")
    names = dict(one.fields)
    for name, value in other.fields:
        names[name] = joined(names.get(name), value, depth + 1)
    item = None if one.item is None and other.item is None else joined(one.item, other.item, depth + 1)
    computed = one.computed or other.computed or one.known is not None or other.known is not None
    return Value(None, one.paths | other.paths, by_name(names), item, computed)


def by_name(names: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    """The fields of a value, sorted by their names."""
    return tuple(sorted(names.items(), key=lambda pair: pair[0]))
