"""Material of environments: contacts as JSON and documents as text, read into rows that fit a schema, or not at all.

Nothing is corrected: a contact with one field of the wrong type makes its whole record unfit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.documents.canonical import canonical
from engine.documents.strict_json import MAX_SAFE_INTEGER, AmbiguousJsonError, NotJsonError, read_strict

Row = tuple[str, ...]
"""The texts of one row, in the order of the columns: of contacts `CONTACT`, of documents id, title and text."""

CONTACT = ("id", "name", "email", "city", "phone", "note", "tags")
"""The fields of a contact. `id` is text or a whole number, `tags` a list of texts; `id` and `name` are required."""

_LEVELS = 4
"""Nesting of contacts: a list of objects with a list of tags has three."""

_ID_CHARACTERS = 128
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Control characters but tab and line feed, and characters that hide text or change its direction."""

_FORMULA = re.compile(r"[\s]*[=@]|[\s]*[+-](?![0-9 ().-]*\Z)|[\t\r]")
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
    """Reads the records of one source bundle in turn: an id may occur once in all of them."""

    holds: str
    ids: set[str] = field(default_factory=set)

    def read(self, record: str, data: bytes) -> Material:
        """What the content of a record contains; never raises for content."""
        try:
            text = data.decode("utf-8")
            rows = _READERS[self.holds](record, text)
            self._unique(rows)
        except UnicodeDecodeError as error:
            return Material(problem=f"it is not UTF-8 at byte {error.start}")
        except _UnfitError as error:
            return Material(problem=str(error))
        texts = [text for row in rows for text in row]
        every = "\n".join(texts)
        return Material(
            rows,
            longest=max(map(len, texts), default=0) if every.isascii() else max(len(one.encode()) for one in texts),
            controls=sum(map(bool, map(_CONTROL.search, texts))) if _CONTROL.search(every) else 0,
            formulas=sum(map(bool, map(_FORMULA.match, texts))) if self.holds == "contacts" else 0,
        )

    def _unique(self, rows: Iterable[Row]) -> None:
        for number, (id_, *_) in enumerate(rows):
            if id_ in self.ids:
                raise _UnfitError(f"the id of item {number} occurs before")
            self.ids.add(id_)


class _UnfitError(ValueError):
    """Content that does not fit its schema; the text names no content."""


def _contacts(_: str, text: str) -> tuple[Row, ...]:
    try:
        found = read_strict(text, levels=_LEVELS, largest=MAX_SAFE_INTEGER)
    except AmbiguousJsonError as error:
        raise _UnfitError(f"it {error.problem}") from error
    except NotJsonError as error:
        raise _UnfitError("it is not JSON") from error
    if not isinstance(found, list):
        raise _UnfitError("it is not a list of contacts")
    return tuple(_contact(number, item) for number, item in enumerate(found))


def _contact(number: int, item: Any) -> Row:
    if not isinstance(item, dict):
        raise _UnfitError(f"item {number} is not an object")
    if not item.keys() <= _FIELDS:
        raise _UnfitError(f"item {number} has a field that contacts do not have")
    id_, tags = item.get("id"), item.get("tags", [])
    if type(id_) is int:
        id_ = str(id_)
    if not isinstance(id_, str) or not 0 < len(id_) <= _ID_CHARACTERS:
        raise _UnfitError(f"item {number} has no `id`, a text or a whole number")
    if not item.get("name"):
        raise _UnfitError(f"item {number} has no `name`")
    texts = [item.get(name, "") for name in _TEXTS]
    if not all(type(text) is str for text in texts):
        raise _UnfitError(f"item {number} has a field of the wrong type")
    if not isinstance(tags, list) or not all(type(tag) is str for tag in tags):
        raise _UnfitError(f"item {number} has `tags` that are not a list of texts")
    return (id_, *texts, canonical(tags).decode("utf-8"))


_FIELDS = frozenset(CONTACT)
_TEXTS = CONTACT[1:-1]


def _document(record: str, text: str) -> tuple[Row, ...]:
    if not text.strip():
        raise _UnfitError("it is empty")
    title = text.lstrip("\ufeff\n\r #").partition("\n")[0].strip()
    return ((record, title[:200], text),)


_READERS: Mapping[str, Callable[[str, str], tuple[Row, ...]]] = {"contacts": _contacts, "documents": _document}
"""By what an environment holds."""

HOLDS = frozenset(_READERS)
