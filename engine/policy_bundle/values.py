"""`policy/*.yaml` to checked values: what a recipe lays over them, overrides, closed models, the place of every row.

A recipe's `values/<name>.yaml` is a JSON Merge Patch (RFC 7396) of `policy/<name>.yaml`: mappings are merged, any
other value replaces what was there, and null removes it; a file of nothing but comments changes nothing. An empty
file is refused: a full disk or a killed editor leaves one, and without what it said more might be admitted. Its
`values/parameters.yaml` is a document of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import Field, JsonValue, RootModel

from engine.documents.canonical import compact, parse
from engine.documents.files import Document, load, printable
from engine.errors import GatherError, Location, Problem
from engine.model import Model
from engine.policy_bundle import explain, schemas
from engine.policy_bundle.catalogue import quoted
from engine.policy_bundle.checks import PARAMETERS
from engine.settings import ReadLimits

Row = tuple[str | int, ...]
OVERRIDES = "--values"
"""The place of a value that no file has: where overrides come from."""

_SEGMENT = re.compile(r'"([^"]*)"|([^."]+)')


class Parameters(RootModel[dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], JsonValue]]):
    """Values that added rules define for themselves: any, by name."""


@dataclass(frozen=True, slots=True)
class _Overlaid(Document):
    """A document with another laid over it; `above` are the paths that the other one has."""

    other: str
    above: frozenset[Row]

    def _file(self, path: Row) -> str:
        return self.other if path in self.above else self.name


def read(
    files: Mapping[str, bytes], overrides: tuple[str, ...], documents: Mapping[str, type[Model]], found: list[Problem]
) -> tuple[dict[str, Any], bytes] | None:
    """The future `data.policy` and, for `locations`, where its values are; None with all problems in `found` otherwise.

    A null value is left out of `data`, like a null fact: `null < 5` is true in Rego.
    """
    before = len(found)
    ready = _documents(files, documents, found)
    changed = {name: path for text in overrides for name, path in _override(text, ready, found)}
    overridden = [(path[0], path[1:]) for path in changed.values()]
    models = {
        name: explain.validated(
            documents.get(name, Parameters), document, found, overrides=[path for of, path in overridden if of == name]
        )
        for name, document in ready.items()
    }
    if len(found) > before:
        found[before:] = [_overridden(one, changed) for one in found[before:]]
        return None
    data = {
        name: model.model_dump(mode="json", exclude_none=True) for name, model in models.items() if model is not None
    }
    written = [(name, file, rows) for name, document in ready.items() for file, rows in _rows(document)]
    return data, compact([written, [(path, printable(text)) for text, path in changed.items()]])


def _rows(document: Document) -> Iterator[tuple[str, list[tuple[Row, int]]]]:
    """The files of a document, with the path and line of each value that is there."""
    if not isinstance(document, _Overlaid):
        yield document.name, [*document.lines.items()]
        return
    yield document.name, [row for row in document.lines.items() if row[0] not in document.above]
    yield document.other, [row for row in document.lines.items() if row[0] in document.above]


def locations(written: bytes) -> dict[Row, Location]:
    """The location of each value, by its path below `policy/`, from what `read` wrote."""
    files, changed = parse(written)
    places = {
        (name, *path): Location(file, line, ".".join(map(str, path)) or None)
        for name, file, rows in files
        for path, line in rows
    }
    for path, text in changed:
        places = {row: place for row, place in places.items() if row[: len(path)] != tuple(path)}
        places |= {tuple(path[:end]): Location(OVERRIDES, None, text) for end in range(2, len(path) + 1)}
    return places


def _documents(
    files: Mapping[str, bytes], documents: Mapping[str, type[Model]], found: list[Problem]
) -> dict[str, Document]:
    """The documents by name, each with what the recipe lays over it."""
    names = {f"policy/{document}.yaml" for document in documents}
    remedy = "write it; without it, rules that read it never hold"
    found.extend(Problem(Location(name), "the file is missing", remedy) for name in sorted(names - files.keys()))
    ready: dict[str, Document] = {}
    for name in sorted(files, key=lambda one: (one not in names, one)):  # what is laid over them comes last
        stem = PurePosixPath(name).stem
        if name not in names and (name.startswith("policy/") or stem not in {*documents, PARAMETERS}):
            known = [f"{one}.yaml" for one in (*documents, *([] if name.startswith("policy/") else [PARAMETERS]))]
            remedy = f"{schemas.likely(f'{stem}.yaml', known)}use one of {quoted(known)}"
            found.append(Problem(Location(name), "there are no values of this name", remedy))
        elif not is_blank(name, files[name]):
            document, problems = _document(files[name], name)
            found.extend(problems)
            if document is not None:
                below = ready.get(stem)
                ready[stem] = document if below is None else _overlaid(below, document)
    return ready


@lru_cache(maxsize=64)  # an edit changes one of some thirty files, and reading them takes longest
def _document(data: bytes, name: str) -> tuple[Document | None, tuple[Problem, ...]]:
    """The document of a file, which nobody may change, or None with its problems."""
    found: list[Problem] = []
    return explain.read(data, name, found), tuple(found)


def is_blank(name: str, data: bytes) -> bool:
    """Whether a file has nothing but comments, and at least one; one of policy/ must have a document."""
    if name.startswith("policy/") or not data.strip():
        return False
    return not re.sub(rb"(?m)^[ \t\r]*(#.*|---)?$", b"", data).strip()


def _overlaid(below: Document, over: Document) -> Document:
    if over.value is None:
        return below  # nothing but comments and `---`
    lines = dict(below.lines)
    value = _merged(below.value, over.value, (), lines)
    return _Overlaid(below.name, value, lines | over.lines, over.name, frozenset(over.lines))


def _merged(below: Any, over: Any, path: Row, lines: dict[Row, int]) -> Any:
    """RFC 7396; takes the lines of what is replaced out of `lines`."""
    if not isinstance(over, dict):
        for row in [row for row in lines if row[: len(path)] == path]:
            del lines[row]
        return over
    merged = dict(below) if isinstance(below, dict) else {}
    for key, value in over.items():
        new = _merged(merged.get(key), value, (*path, key), lines)
        if new is None:
            merged.pop(key, None)
        else:
            merged[key] = new
    return merged


def parameters(files: Mapping[str, bytes], found: list[Problem]) -> Document | None:
    """The parameters of the recipe's rules; None if it has none, or if they are invalid (added to `found`)."""
    name = next((name for name in files if PurePosixPath(name).stem == PARAMETERS), None)
    if name is None or name.startswith("policy/") or is_blank(name, files[name]):
        return None
    return explain.read(files[name], name, found)


def schema_of(value: Any) -> dict[str, Any]:
    """The JSON Schema that fits this value: a name that it does not have is never defined."""
    match value:
        case dict():
            properties = {str(key): schema_of(one) for key, one in value.items() if one is not None}
            return {"type": "object", "properties": properties, "additionalProperties": False}
        case list():
            return {"type": "array", "items": {"anyOf": [schema_of(one) for one in value]} if value else {}}
        case bool():
            return {"type": "boolean"}
        case str():
            return {"type": "string"}
        case _:
            return {"type": "number"}


def _overridden(problem: Problem, changed: Mapping[str, Row]) -> Problem:
    """The same problem at the override that brought it, where one did."""
    for text, path in changed.items():
        name, field = PurePosixPath(problem.where.file).stem, ".".join(map(str, path[1:]))
        if name == path[0] and f"{problem.where.field}.".startswith(f"{field}."):
            return Problem(Location(OVERRIDES, None, printable(text)), problem.message, problem.remedy)
    return problem


def _override(text: str, documents: dict[str, Document], found: list[Problem]) -> Iterator[tuple[str, Row]]:
    """Apply one `key=value` to the documents; yields its key and path when it could be applied."""
    key, equals, written = text.partition("=")
    where = Location(OVERRIDES, None, printable(text))
    segments = [quoted or plain for quoted, plain in _SEGMENT.findall(key)]
    if not equals or not segments or _SEGMENT.sub("", key).strip("."):
        found.append(Problem(where, "this is not PATH=VALUE", "write it like `licenses.licenses.MIT.decision=refuse`"))
        return
    if not written.strip():
        found.append(
            Problem(where, "there is no value after `=`", "write one, such as `licenses.licenses.MIT.decision=refuse`")
        )
        return
    try:
        value = load(written.encode("utf-8", "surrogateescape"), OVERRIDES, ReadLimits()).value
    except GatherError as error:
        found.append(Problem(where, f"the value cannot be read: {error.message}", error.remedy))
        return
    if segments[0] not in documents:
        message = f"there are no values `{printable(segments[0])}`"
        likely = schemas.likely(segments[0], sorted(documents))
        found.append(Problem(where, message, f"{likely}use one of {quoted(documents)}"))
        return
    own = documents[segments[0]]
    documents[segments[0]] = own = replace(own, value=parse(compact(own.value)))
    path = _set(own.value, segments[1:], value)
    if isinstance(path, str):
        remedy = path + 'name an existing value, or one new key below it; quote a key with dots: licenses."GPL-9.0"'
        found.append(Problem(where, f"`{printable(key)}` has a parent that does not exist", remedy))
        return
    yield text, (segments[0], *path)


def _set(value: Any, segments: list[str], new: Any) -> Row | str:
    """Set `new` at the path of the segments; keys may contain dots, the longest existing key wins.

    If a parent does not exist, the result is a text instead: the question for the likely key, empty if none is near.
    """
    path: list[str | int] = []
    while segments:
        step = _step(value, segments)
        if step is None:
            return schemas.likely(segments[0], sorted(value)) if isinstance(value, dict) else ""
        key, used = step
        path.append(key)
        segments = segments[used:]
        if not segments:
            value[key] = new
            return tuple(path)
        value = value[key]
    return ""


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
