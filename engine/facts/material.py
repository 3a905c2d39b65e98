"""Material of environments: contacts as JSON and documents as text, read into rows that fit a schema, or not at all.

Nothing is corrected: a contact with one field of the wrong type makes its whole record unfit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.documents.canonical import canonical
from engine.documents.strict_json import MAX_SAFE_INTEGER, has_more_values

Row = tuple[str, ...]
"""The texts of one row, in the order of the columns: of contacts `CONTACT`, of documents id, title and text."""

CONTACT = ("id", "name", "email", "city", "phone", "note", "tags")
"""The fields of a contact. `id` is text or a whole number, `tags` a list of texts; `id` and `name` are required."""

_ID_CHARACTERS = 128
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Control characters but tab and line feed, and characters that hide text or change its direction."""

_STARTS = "=@+-"
_FORMULA = re.compile(r"\s*[=@]|\s*[+-](?![0-9 ().-]*\Z)|[\t\r]")
"""How texts begin that spreadsheets run as formulas (OWASP, CSV injection); a phone number such as +44 20 is none."""


@dataclass(frozen=True, slots=True)
class Material:
    """What one record contains. `problem` says why it does not fit, with the position of the first misfit.

    `longest` is the size of the largest text in bytes; `controls` and `formulas` count texts.
    """

    rows: tuple[Row, ...] = ()
    problem: str | None = None
    longest: int = 0
    controls: int = 0
    formulas: int = 0


@dataclass(slots=True)
class Reader:
    """Reads the records of one source bundle in turn: an id may occur once in all of them.

    JSON with more than `most_values` values is not read: its objects would take far more memory than its text.
    """

    holds: str
    most_values: int
    ids: set[str] = field(default_factory=set)

    def read(self, record: str, data: bytes) -> Material:
        """What the content of a record contains; never raises for content."""
        try:
            if self.holds == "contacts" and has_more_values(data, self.most_values):
                return Material(problem=f"it has more than {self.most_values} values")
            text = data.decode("utf-8")
            rows = _READERS[self.holds](record, text)
            self._unique(rows)
            texts = [text for row in rows for text in row]
            longest = max(map(len, texts), default=0) if _ascii(texts) else max(len(one.encode()) for one in texts)
        except UnicodeDecodeError as error:
            return Material(problem=f"it is not UTF-8 at byte {error.start}")
        except UnicodeEncodeError:
            return Material(problem="it contains an unpaired surrogate")
        except _UnfitError as error:
            return Material(problem=str(error))
        return Material(rows, longest=longest, controls=_controls(texts), formulas=_formulas(texts, self.holds))

    def _unique(self, rows: Iterable[Row]) -> None:
        for number, (id_, *_) in enumerate(rows):
            if id_ in self.ids:
                raise _UnfitError(f"the id of item {number} occurs before")
            self.ids.add(id_)


def _ascii(texts: Iterable[str]) -> bool:
    return all(map(str.isascii, texts))


def _controls(texts: list[str]) -> int:
    """How many texts contain control characters; none of these is printable."""
    if all(map(str.isprintable, texts)):
        return 0
    return sum(_CONTROL.search(text) is not None for text in texts)


def _formulas(texts: list[str], holds: str) -> int:
    """How many texts of contacts are formulas, looked at only if one begins like a formula or with a space."""
    firsts = {text[:1] for text in texts} if holds == "contacts" else set()
    if not any(first.isspace() or first in _STARTS for first in firsts if first):
        return 0
    return sum(_FORMULA.match(text) is not None for text in texts)


class _UnfitError(ValueError):
    """Content that does not fit its schema; the text names no content."""


def _contacts(_: str, text: str) -> tuple[Row, ...]:
    """No value has two readings: keys that occur twice are found below, and only texts and whole numbers fit."""
    try:
        found = json.loads(text, object_pairs_hook=tuple)
    except RecursionError as error:
        raise _UnfitError("it is nested too deeply") from error
    except ValueError as error:  # also a number of more digits than Python converts
        raise _UnfitError("it is not JSON") from error
    if not isinstance(found, list):
        raise _UnfitError("it is not a list of contacts")
    return tuple(_contact(number, item) for number, item in enumerate(found))


def _contact(number: int, pairs: Any) -> Row:
    if not isinstance(pairs, tuple):
        raise _UnfitError(f"item {number} is not an object")
    item = dict(pairs)
    if len(item) != len(pairs):
        raise _UnfitError(f"item {number} has a key twice")
    if not item.keys() <= _FIELDS:
        raise _UnfitError(f"item {number} has a field that contacts do not have")
    id_, tags = item.get("id"), item.get("tags", [])
    if type(id_) is int and abs(id_) <= MAX_SAFE_INTEGER:
        id_ = str(id_)
    if not isinstance(id_, str) or not 0 < len(id_) <= _ID_CHARACTERS:
        raise _UnfitError(f"item {number} has no `id`, a text or a whole number")
    if not item.get("name"):
        raise _UnfitError(f"item {number} has no `name`")
    texts = [item.get(name, "") for name in _TEXTS]
    if {*map(type, texts)} != _ONLY_TEXT:
        raise _UnfitError(f"item {number} has a field of the wrong type")
    if not isinstance(tags, list) or not {*map(type, tags)} <= _ONLY_TEXT:
        raise _UnfitError(f"item {number} has `tags` that are not a list of texts")
    return (id_, *texts, canonical(tags).decode() if tags else "[]")


_FIELDS = frozenset(CONTACT)
_TEXTS = CONTACT[1:-1]
_ONLY_TEXT = {str}


def _document(record: str, text: str) -> tuple[Row, ...]:
    if not text.strip():
        raise _UnfitError("it is empty")
    title = text.lstrip("\ufeff\n\r #").partition("\n")[0].strip()
    return ((record, title[:200], text),)


_READERS: Mapping[str, Callable[[str, str], tuple[Row, ...]]] = {"contacts": _contacts, "documents": _document}
"""By what an environment holds."""

HOLDS = frozenset(_READERS)
