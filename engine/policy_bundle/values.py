"""`policy/*.yaml` to checked values: closed models, overrides, and the place of every row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from engine.canonical import canonical
from engine.errors import GatherError, Location, Problem
from engine.files import Document, load, shown
from engine.model import Model
from engine.policy_bundle.catalogue import quoted
from engine.policy_bundle.explain import problems
from engine.settings import ReadLimits

Row = tuple[str | int, ...]
OVERRIDES = "--values"
"""The place of a value that no file has: where overrides come from."""

_SEGMENT = re.compile(r'"([^"]*)"|([^."]+)')


@dataclass(frozen=True, slots=True)
class Values:
    """What `data.policy` will be, and where each value stands."""

    data: dict[str, Any]
    places: dict[Row, Location]


def read(
    files: Mapping[str, bytes], overrides: tuple[str, ...], documents: Mapping[str, type[Model]], found: list[Problem]
) -> Values | None:
    """Every document read, overridden and checked; None with all reasons in `found` otherwise.

    A value that is null is left out of `data`, as a fact would be: `null < 5` is true in Rego.
    """
    before = len(found)
    names = {f"policy/{document}.yaml": document for document in documents}
    for name in sorted(files.keys() - names):
        known = quoted(f"{one}.yaml" for one in documents)
        found.append(Problem(Location(name), "there are no values of this name", f"use one of {known}"))
    remedy = "write it; rules that read it hold for nothing without it"
    found.extend(Problem(Location(name), "the file is missing", remedy) for name in sorted(names.keys() - files))
    loaded = {names[name]: _load(name, files[name], found) for name in sorted(names.keys() & files)}
    ready = {name: document for name, document in loaded.items() if document is not None}
    changed = {name: path for text in overrides for name, path in _override(text, ready, found)}
    data = {name: _validated(document, documents[name], found) for name, document in ready.items()}
    if len(found) > before:
        found[before:] = [_overridden(one, changed) for one in found[before:]]
        return None
    places = {(name, *path): document.where(path) for name, document in ready.items() for path in document.lines}
    for text, path in changed.items():
        places = {row: place for row, place in places.items() if row[: len(path)] != path}
        places[path] = Location(OVERRIDES, None, shown(text))
    return Values(data, places)


def _load(name: str, data: bytes, found: list[Problem]) -> Document | None:
    try:
        return load(data, name, ReadLimits())
    except GatherError as error:
        found.append(Problem(error.where or Location(name), error.message, error.remedy))
        return None


def _validated(document: Document, model: type[Model], found: list[Problem]) -> Any:
    try:
        return model.model_validate_json(canonical(document.value)).model_dump(mode="json", exclude_none=True)
    except ValidationError as error:
        found.extend(problems(error, document))
        return None


def _overridden(problem: Problem, changed: Mapping[str, Row]) -> Problem:
    """The same problem at the override that brought it, where one did."""
    for text, path in changed.items():
        name, field = f"policy/{path[0]}.yaml", ".".join(map(str, path[1:]))
        if problem.where.file == name and f"{problem.where.field}.".startswith(f"{field}."):
            return Problem(Location(OVERRIDES, None, shown(text)), problem.message, problem.remedy)
    return problem


def _override(text: str, documents: Mapping[str, Document], found: list[Problem]) -> Iterator[tuple[str, Row]]:
    """Apply one `key=value` to the documents; yields its key and path when it could be applied."""
    key, equals, written = text.partition("=")
    where = Location(OVERRIDES, None, shown(text))
    segments = [quoted or plain for quoted, plain in _SEGMENT.findall(key)]
    if not equals or not segments or _SEGMENT.sub("", key).strip("."):
        found.append(Problem(where, "this is no `key=value`", "write it like `licenses.licenses.MIT.decision=refuse`"))
        return
    try:
        value = load(written.encode("utf-8", "surrogateescape"), OVERRIDES, ReadLimits()).value
    except GatherError as error:
        found.append(Problem(where, f"the value {re.sub('^`[^`]*` ', '', error.message)}", error.remedy))
        return
    if segments[0] not in documents:
        message = f"there are no values `{shown(segments[0])}`"
        found.append(Problem(where, message, f"use one of {quoted(documents)}"))
        return
    path = _set(documents[segments[0]].value, segments[1:], value)
    if path is None:
        remedy = 'name a value that is there, or one new key below it; quote a key with dots: licenses."GPL-9.0"'
        found.append(Problem(where, f"`{shown(key)}` has a parent that is not there", remedy))
        return
    yield text, (segments[0], *path)


def _set(value: Any, segments: list[str], new: Any) -> Row | None:
    """Put `new` where the segments lead; keys may have dots, the longest key that is there wins."""
    path: list[str | int] = []
    while segments:
        step = _step(value, segments)
        if step is None:
            return None
        key, used = step
        path.append(key)
        segments = segments[used:]
        if not segments:
            value[key] = new
            return tuple(path)
        value = value[key]
    return None


def _step(value: Any, segments: list[str]) -> tuple[str | int, int] | None:
    """The key that the first segments name in a mapping or list, and how many they are."""
    if isinstance(value, list):
        index = int(segments[0]) if segments[0].isascii() and segments[0].isdigit() else len(value)
        return (index, 1) if index < len(value) else None
    if not isinstance(value, dict):
        return None
    for used in range(len(segments), 0, -1):
        if (key := ".".join(segments[:used])) in value:
            return key, used
    return (segments[0], 1) if len(segments) == 1 else None
