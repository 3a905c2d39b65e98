"""Facts about a program's output under the names of a contract: kinds, numbers, digests of texts.

No text of the output gets into a fact: texts are known by their digests, and the text of an answer comes from
the policy and the request. A number is a fact only where every reader of JSON has the same one, so an integer
beyond 2^53 has a kind and no number. Rows C36 to C43, C73, C74, C85, H02, H18, H20.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from engine.documents.strict_json import MAX_SAFE_INTEGER, AmbiguousJsonError, NotJsonError, read_strict
from engine.model import Model, Sha256

Kind = Literal["absent", "boolean", "integer", "list", "null", "number", "object", "text"]

CARRIED_CHARACTERS = 200
"""Of a field of the request that an answer repeats: an id, a date, a name."""

_NUMBER_CHARACTERS = 64
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number as a text says it, in ASCII and without `nan` or `inf`."""


class FieldFacts(Model):
    """One field of the output. Text has digests: as it is, and in upper case; so has an integer, as text."""

    id: str
    present: bool
    kind: Kind
    flag: bool | None = None
    number: float | int | None = None
    sha256: Sha256 | None = None
    upper_sha256: Sha256 | None = None


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


def output_facts(stdout: str, names: Sequence[str]) -> OutputFacts:
    """The facts of standard output, and of the fields of these names. Never raises."""
    data = stdout.encode("utf-8", "replace")
    value: Any = None
    try:
        value, readable = read_strict(stdout), True
    except (NotJsonError, AmbiguousJsonError):
        readable = False
    fields = tuple(_field(name, value) for name in names) if isinstance(value, dict) else ()
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


def _field(name: str, output: dict[str, Any]) -> FieldFacts:
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
