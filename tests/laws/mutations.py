"""Ways to take a fact away from a document, or to give it another type."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Path_ = tuple[str | int, ...]

DROPPED = object()
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
    for path in paths(document):
        present = get(document, path)
        yield path, DROPPED, with_value(document, path, DROPPED)
        for wrong in WRONG:
            if type(wrong) is not type(present) or (wrong == "" and present != ""):
                yield path, wrong, with_value(document, path, wrong)


def unknown(document: Any) -> Iterator[tuple[Path_, Any]]:
    """The document with an unknown field in each of its mappings."""
    for path in [(), *paths(document)]:
        if isinstance(get(document, path), dict):
            yield path, with_value(document, (*path, "surprise"), 1)
