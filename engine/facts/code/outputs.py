"""Facts about a program's output under the names of a contract: kinds, numbers, digests of texts.

No text of the output gets into a fact: texts are known by their digests, and the text of an answer comes from
the policy and the request. Of a list, and of each column of a table, facts are counts, bounds and digests; its
content is known by one digest, for which `content_of` finds it again. A number is a fact only where every reader of
JSON has the same one, so an integer beyond 2^53 has a kind and no number. Rows C36 to C43, C73, C74, C85, H02, H18,
H20.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from engine.documents.canonical import canonical
from engine.documents.strict_json import MAX_SAFE_INTEGER, AmbiguousJsonError, NotJsonError, read_strict
from engine.model import Model, Sha256

Kind = Literal["absent", "boolean", "integer", "list", "null", "number", "object", "text"]

CARRIED_CHARACTERS = 200
"""Of a field of the request that an answer repeats: an id, a date, a name."""

_NUMBER_CHARACTERS = 64
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number as a text says it, in ASCII and without `nan` or `inf`."""


MOST_TEXTS = 1_000
"""Different texts of a column that are kept as facts; of a column with more, none are."""

Shape = tuple[str, ...] | None
"""What is looked for in a field: the columns of a table; for a list, no columns; None for a single value."""


class ColumnFacts(Model):
    """The values of a list or of a column: how many are of each kind, and their bounds.

    `missing` counts nulls and what is not there. `numbers` counts those that all readers share, `integers` those of
    them without point and exponent. `longest` is in characters. `texts` are the digests of different texts, if few.
    """

    missing: int
    values: int
    booleans: int
    integers: int
    numbers: int
    least: float | int | None = None
    most: float | int | None = None
    strings: int
    longest: int
    texts: tuple[Sha256, ...] | None = None


class FieldFacts(Model):
    """One field of the output. Text has digests: as it is, and in upper case; so has an integer, as text.

    `entries` counts a list, `rows` those of its entries that are objects; `content` is the digest of a text, or of a
    list with nothing but its columns. The values of the list `x` are the field `x.items`, a column is `x.NAME`; they
    have `column` and no kind.
    """

    id: str
    present: bool
    kind: Kind | None = None
    flag: bool | None = None
    number: float | int | None = None
    sha256: Sha256 | None = None
    upper_sha256: Sha256 | None = None
    characters: int | None = None
    entries: int | None = None
    rows: int | None = None
    content: Sha256 | None = None
    column: ColumnFacts | None = None


class OutputFacts(Model):
    """Standard output. `bytes` counts it untrimmed as UTF-8; `parsed`: it is one JSON value that all readers share."""

    bytes: int
    sha256: Sha256
    blank: bool
    parsed: bool
    object: bool
    fields: tuple[FieldFacts, ...]


class EchoedFacts(Model):
    """A field of the request that the answer repeats; absent texts are none, too long, or cannot be printed."""

    id: str
    text: str | None = None
    upper: str | None = None


def output_facts(stdout: str, shapes: Mapping[str, Shape]) -> OutputFacts:
    """The facts of standard output, and of the fields of these names and shapes. Never raises."""
    data = stdout.encode("utf-8", "replace")
    value: Any = None
    try:
        value, readable = read_strict(stdout), True
    except (NotJsonError, AmbiguousJsonError):
        readable = False
    fields: tuple[FieldFacts, ...] = ()
    if isinstance(value, dict):
        fields = tuple(one for name, shape in shapes.items() for one in _fields(name, shape, value))
    return OutputFacts(
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        blank=not stdout.strip(),
        parsed=readable,
        object=isinstance(value, dict),
        fields=fields,
    )


def echoed_facts(request: Any, names: Sequence[str]) -> tuple[EchoedFacts, ...]:
    """The facts of the fields of these names of a request."""
    fields = request if isinstance(request, dict) else {}
    return tuple(_echoed(name, _text(fields.get(name))) for name in names)


def _echoed(name: str, text: str | None) -> EchoedFacts:
    if text is None or not text.strip() or len(text) > CARRIED_CHARACTERS or not text.isprintable():
        return EchoedFacts(id=name)
    return EchoedFacts(id=name, text=text, upper=text.upper())


def content_of(stdout: str, name: str, shape: Shape) -> tuple[Any, Sha256 | None]:
    """A field's text, or its list with nothing but its columns; and the digest by which facts know it."""
    try:
        output = read_strict(stdout)
    except (NotJsonError, AmbiguousJsonError):
        return None, None
    value = output.get(name) if isinstance(output, dict) else None
    return _content(value, shape)


def _content(value: Any, shape: Shape) -> tuple[Any, Sha256 | None]:
    if isinstance(value, list) and shape is not None:
        rows = [row if isinstance(row, dict) else {} for row in value]
        value = [{column: row.get(column) for column in shape} for row in rows] if shape else value
    elif not isinstance(value, str):
        return None, None
    try:
        return value, hashlib.sha256(canonical(value)).hexdigest()
    except (ValueError, TypeError, RecursionError):
        return None, None


def _fields(name: str, shape: Shape, output: dict[str, Any]) -> Iterator[FieldFacts]:
    """The facts of a field, then of its values or columns."""
    whole = _field(name, shape, output)
    yield whole
    if shape is None:
        return
    value = output.get(name)
    listed = value if isinstance(value, list) else []
    for column in shape or ("items",):
        values = [row.get(column) if isinstance(row, dict) else None for row in listed] if shape else listed
        yield FieldFacts(id=f"{name}.{column}", present=whole.present, column=_column(values))


def _column(values: Sequence[Any]) -> ColumnFacts:
    there = [value for value in values if value is not None]
    numbers = [number for value in there if not isinstance(value, str) and (number := _number(value)) is not None]
    strings = [value for value in there if isinstance(value, str)]
    texts = {_digest(text) for text in set(strings)}
    return ColumnFacts(
        missing=len(values) - len(there),
        values=len(there),
        booleans=sum(isinstance(value, bool) for value in there),
        integers=sum(isinstance(one, int) for one in numbers),
        numbers=len(numbers),
        least=min(numbers, default=None),
        most=max(numbers, default=None),
        strings=len(strings),
        longest=max(map(len, strings), default=0),
        texts=tuple(sorted(texts)) if len(texts) <= MOST_TEXTS else None,
    )


def _field(name: str, shape: Shape, output: dict[str, Any]) -> FieldFacts:
    if name not in output:
        return FieldFacts(id=name, present=False, kind="absent")
    value = output[name]
    text = _text(value)
    return FieldFacts(
        id=name,
        present=True,
        kind=_kind(value),
        flag=value if isinstance(value, bool) else None,
        number=_number(value),
        sha256=None if text is None else _digest(text),
        upper_sha256=None if text is None else _digest(text.upper()),
        characters=len(value) if isinstance(value, str) else None,
        entries=len(value) if isinstance(value, list) else None,
        rows=sum(isinstance(row, dict) for row in value) if isinstance(value, list) else None,
        content=_content(value, shape)[1],
    )


def _kind(value: Any) -> Kind:
    kinds: dict[type, Kind] = {
        bool: "boolean", int: "integer", float: "number", str: "text", list: "list", dict: "object",
    }  # fmt: skip
    return kinds.get(type(value), "null")


def _number(value: Any) -> float | int | None:
    """A number, or text that contains one; a boolean is not a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else None
    if isinstance(value, str) and len(value) <= _NUMBER_CHARACTERS and DECIMAL.fullmatch(value.strip()):
        value = float(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


def _text(value: Any) -> str | None:
    """A text, or an integer as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) <= MAX_SAFE_INTEGER else None
    return value if isinstance(value, str) else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
