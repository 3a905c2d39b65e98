"""Material of environments: contacts as JSON and documents as text, read into rows that fit a schema, or not at all.

Nothing is corrected: a contact with one field of the wrong type makes its whole record unfit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from engine.documents.canonical import canonical, parse
from engine.documents.strict_json import MAX_SAFE_INTEGER, has_more_values
from engine.facts.text.hidden import hidden_in

Row = tuple[str, ...]
"""The texts of one row, in the order of the columns: of contacts `CONTACT`, of documents id, title and text."""

CONTACT = ("id", "name", "email", "city", "phone", "note", "tags")
"""The fields of a contact. `id` is text or a whole number, `tags` a list of texts; `id` and `name` are required."""

_ID_CHARACTERS = 128
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)")
"""Control characters but tab, form feed and the ends of lines (LF, CRLF), and the line ends of Unicode."""

_SOFT_HYPHEN = "\xad"
_BETWEEN = "\0"
_MAY_BE_FORMULA = re.compile(r"\x00([\s=@+-][^\x00]*)")
_FORMULA = re.compile(r"\s*[=@]|\s*[+-](?![0-9 ()./-]*(?:(?:x|ext\.?) ?[0-9]+)?\Z)|[\t\r]")
"""How texts begin that spreadsheets run as formulas (OWASP, CSV injection); a phone number such as +44 20 is none."""


@dataclass(frozen=True, slots=True)
class Material:
    """What one record contains. `problem` says why it does not fit, with the position of the first misfit.

    `longest` is the size of the largest text in bytes; `controls` and `formulas` count texts. `first` says where the
    first of these is, or that there are no rows.
    """

    rows: tuple[Row, ...] = ()
    problem: str | None = None
    longest: int = 0
    controls: int = 0
    formulas: int = 0
    first: str | None = None


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
            read = [_texts_of(row) if self.holds == "contacts" else row[-1:] for row in rows]  # the text has its title
            texts = Texts([text for row in read for text in row])
            longest = max(texts.longest(), max((len(row[-1].encode()) for row in rows), default=0))  # all tags of a row
        except UnicodeDecodeError as error:
            return Material(problem=f"it is not UTF-8 at byte {error.start}")
        except UnicodeEncodeError:
            return Material(problem="it contains an unpaired surrogate")
        except UnfitError as error:
            return Material(problem=str(error))
        controls, formulas = texts.controls(), texts.formulas() if self.holds == "contacts" else 0
        first = None if rows else "it is empty"
        if controls or formulas:
            first = _first(read, formulas > 0)
        return Material(rows, longest=longest, controls=controls, formulas=formulas, first=first)

    def _unique(self, rows: Sequence[Row]) -> None:
        fresh = {row[0] for row in rows}
        if len(fresh) == len(rows) and fresh.isdisjoint(self.ids):
            self.ids |= fresh
            return
        for number, (id_, *_) in enumerate(rows):
            if id_ in self.ids:
                raise UnfitError(f"item {number} has the id of an earlier item")
            self.ids.add(id_)


class Texts:
    """All texts of a record, looked at as one where that is faster: NUL stands between them, and in none of them."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        joined = _BETWEEN + _BETWEEN.join(texts)
        self._joined = joined if joined.count(_BETWEEN) == len(texts) else None

    def longest(self) -> int:
        """The size of the largest text in bytes. Raises UnicodeEncodeError for an unpaired surrogate."""
        if self._joined is not None and self._joined.isascii():
            return max(map(len, self._texts), default=0)
        return max((len(one.encode()) for one in self._texts), default=0)

    def controls(self) -> int:
        """How many texts contain characters that `control_in` finds; none of these is printable."""
        if self._joined is not None and self._joined.replace(_BETWEEN, "").isprintable():
            return 0
        return sum(control_in(text) is not None for text in self._texts)

    def formulas(self) -> int:
        """How many texts are formulas; only those are looked at that begin like one or with a space."""
        found = self._texts if self._joined is None else _MAY_BE_FORMULA.findall(self._joined)
        return sum(_FORMULA.match(text) is not None for text in found)


def control_in(text: str) -> int | None:
    """The place of a control character, or of an invisible one that neither script nor emoji needs.

    A soft hyphen hides nothing, wherever it is; nor does what counts as printable, such as a selector.
    """
    found = _CONTROL.search(text)
    hidden = (at for at in hidden_in(text) if text[at] != _SOFT_HYPHEN and not text[at].isprintable())
    return found.start() if found else next(hidden, None)


def _first(rows: Sequence[Sequence[str]], formulas: bool) -> str:  # noqa: FBT001
    """Where the first control character or formula is."""
    for number, row in enumerate(rows):
        for text in row:
            if (at := control_in(text)) is not None:
                return f"U+{ord(text[at]):04X} in item {number}, line {text.count(chr(10), 0, at) + 1}"
            if formulas and _FORMULA.match(text):
                return f"a formula in item {number}"
    return ""


def _texts_of(contact: Row) -> Row:
    """The texts of a contact, its tags one by one: as JSON, a control character is escaped, and no tag comes first."""
    *texts, tags = contact
    return contact if tags == "[]" else (*texts, *json.loads(tags))


class UnfitError(ValueError):
    """Content that does not fit its schema; the text names no content."""


def _contacts(_: str, text: str) -> tuple[Row, ...]:
    fitting = fitting_contacts(text)
    return contacts_one_by_one(text) if fitting is None else fitting


def contacts_one_by_one(text: str) -> tuple[Row, ...]:
    """The rows of contacts. Raises UnfitError, with the position of the first misfit.

    No value has two readings: keys that occur twice are found below, and only texts and whole numbers fit.
    """
    try:
        found = json.loads(text, object_pairs_hook=tuple)
    except RecursionError as error:
        raise UnfitError("it is nested too deeply") from error
    except ValueError as error:  # also a number of more digits than Python converts
        raise UnfitError("it is not JSON") from error
    if not isinstance(found, list):
        raise UnfitError("it is not a list of contacts")
    return tuple(_contact(number, item) for number, item in enumerate(found))


def _contact(number: int, pairs: Any) -> Row:
    if not isinstance(pairs, tuple):
        raise UnfitError(f"item {number} is not an object")
    item = dict(pairs)
    if len(item) != len(pairs):
        raise UnfitError(f"item {number} has a key twice")
    if not item.keys() <= _FIELDS:
        raise UnfitError(f"item {number} has a field that contacts do not have")
    id_, tags = item.get("id"), item.get("tags", [])
    if type(id_) is int and abs(id_) <= MAX_SAFE_INTEGER:
        id_ = str(id_)
    if not isinstance(id_, str) or not 0 < len(id_) <= _ID_CHARACTERS:
        raise UnfitError(f"item {number} has no `id`, a text or a whole number")
    if not str(item.get("name", "")).strip():
        raise UnfitError(f"item {number} has no `name`")
    texts = [item.get(name, "") for name in _TEXTS]
    other = next((name for name, text in zip(_TEXTS, texts, strict=True) if not isinstance(text, str)), None)
    if other is not None:
        raise UnfitError(f"item {number} has `{other}`, which is not text")
    if not isinstance(tags, list) or not {*map(type, tags)} <= _ONLY_TEXT:
        raise UnfitError(f"item {number} has `tags`, which is not a list of texts")
    return (id_, *texts, canonical(tags).decode() if tags else "[]")


def fitting_contacts(text: str) -> tuple[Row, ...] | None:
    """The same rows in less than half of the time, column by column; None if a contact may not fit."""
    try:
        items = parse(text.encode("utf-8"))
    except ValueError:
        return None
    if not isinstance(items, list) or {*map(type, items)} != {dict} or not set().union(*items) <= _FIELDS:
        return None
    ids = _ids([item.get("id") for item in items])
    texts = [[item.get(name, "") for item in items] for name in _TEXTS]
    tags = [item.get("tags", _NO_TAGS) for item in items]
    if ids is None or {*map(type, chain.from_iterable(texts))} != _ONLY_TEXT or not all(map(str.strip, texts[0])):
        return None
    if {*map(type, tags)} != {list} or not {*map(type, chain.from_iterable(tags))} <= _ONLY_TEXT:
        return None
    columns = (ids, *texts, [canonical(one).decode() if one else "[]" for one in tags])
    return tuple(zip(*columns, strict=True)) if _each_key_once(text, items, columns) else None


def _ids(ids: list[Any]) -> list[str] | None:
    """Ids that all fit: all whole numbers, or all texts."""
    kinds = {*map(type, ids)}
    if kinds == {int} and min(ids) >= -MAX_SAFE_INTEGER and max(ids) <= MAX_SAFE_INTEGER:
        return [*map(str, ids)]
    return ids if kinds == _ONLY_TEXT and all(ids) and max(map(len, ids)) <= _ID_CHARACTERS else None


def _each_key_once(text: str, items: list[dict[str, Any]], columns: tuple[list[str], ...]) -> bool:
    """Whether every colon of the text follows a key that was kept, or is inside of a text that was kept.

    A key that occurs twice would leave one more. An escaped colon would not be counted in the text.
    """
    if "\\u003a" in text or "\\u003A" in text:
        return False
    inside = sum("".join(column).count(":") for column in columns)
    return text.count(":") == sum(map(len, items)) + inside


_NO_TAGS: list[str] = []
_FIELDS = frozenset(CONTACT)
_TEXTS = CONTACT[1:-1]
_ONLY_TEXT = {str}


def _document(record: str, text: str) -> tuple[Row, ...]:
    if not text.strip():
        raise UnfitError("it is empty")
    title = text.lstrip("\ufeff\n\r #").partition("\n")[0].strip()
    return ((record, title[:200], text),)


_READERS: Mapping[str, Callable[[str, str], tuple[Row, ...]]] = {"contacts": _contacts, "documents": _document}
"""By what an environment holds."""

HOLDS = frozenset(_READERS)
