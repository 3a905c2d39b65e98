"""Ways to take a fact away from a document, or to give it another type."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from typing import Any

Path_ = tuple[str | int, ...]

DROPPED = object()
TELLING: tuple[Any, ...] = (DROPPED, None, {})
"""What the fast lane tries: Rego orders null below and objects above all else, so comparisons notice them first."""
WRONG: tuple[Any, ...] = (None, True, 0, "", [], {})


def paths(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Every field of every mapping, at any depth, also within list items; no list item as a whole."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key)
            yield from paths(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*at, index))


def get(document: Any, path: Path_) -> Any:
    for part in path:
        document = document[part]
    return document


def with_value(document: Any, path: Path_, value: Any) -> Any:
    """The document with another value at `path`, or without it; it shares all else with the one it is made of."""
    first, rest = path[0], path[1:]
    changed = copy.copy(document)
    if rest:
        changed[first] = with_value(document[first], rest, value)
    elif value is DROPPED:
        del changed[first]
    else:
        changed[first] = value
    return changed


def single(document: Any) -> Iterator[tuple[Path_, Any, Any]]:
    """Every field dropped once, and given each value of another JSON type, or the empty text."""
    return ((path, value, with_value(document, path, value)) for path, value in _changes(document))


def _changes(document: Any) -> Iterator[tuple[Path_, Any]]:
    for path in paths(document):
        present = get(document, path)
        yield path, DROPPED
        yield from ((path, wrong) for wrong in WRONG if _wrong(wrong, present))


def _wrong(value: Any, present: Any) -> bool:
    """Whether a value has another JSON type, in which whole numbers are numbers, or is the empty text."""
    kind = int if isinstance(present, float) else type(present)
    return type(value) is not kind or (value == "" and present != "")


def generic(path: Path_) -> str:
    """A path with `[]` for the place in a list."""
    return ".".join("[]" if isinstance(part, int) else part for part in path)


def each_kind(document: Any, about: Collection[str]) -> Iterator[tuple[Path_, Any, Any]]:
    """Mutations of `single` with one of `TELLING`, once for each kind of field, but for every list item in `about`."""
    seen: set[tuple[str, str]] = set()
    for path, value in _changes(document):
        kind = (generic(path), repr(value))
        if value in TELLING and (kind not in seen or _ids(document, path) & set(about)):
            yield path, value, with_value(document, path, value)
        seen.add(kind)


def _ids(document: Any, path: Path_) -> set[str]:
    """The texts of the list items that a path leads through: ids, names, what an item is about."""
    items = [get(document, path[: at + 1]) for at, part in enumerate(path) if isinstance(part, int)]
    return {text for item in items if isinstance(item, dict) for text in item.values() if isinstance(text, str)}


def unknown(document: Any) -> Iterator[tuple[Path_, Any]]:
    """The document with an unknown field in each of its mappings."""
    for path in [(), *paths(document)]:
        if isinstance(get(document, path), dict):
            yield path, with_value(document, (*path, "surprise"), 1)
