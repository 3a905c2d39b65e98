"""Reading files that others wrote: size, depth, aliases, duplicate keys, odd numbers, positions.

YAML and JSON go through one reader of YAML 1.2 events, so both have the same limits and every
value keeps its line. ruamel.yaml is imported here only.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from engine.errors import GatherError, Location
from engine.settings import ReadLimits

Path_ = tuple[str | int, ...]
"""The way to a value in a document: keys and list indexes from the root."""

_INTEGER = re.compile(r"^-?(0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$")
_ODD_NUMBER = re.compile(
    r"^[-+]?(\.inf|\.nan|[0-9][0-9_]*|0b[01_]+|0o[0-7_]+|0x[0-9a-f_]+|[0-9_]*\.[0-9_]*(e[-+]?[0-9]+)?)$", re.IGNORECASE
)
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_LARGEST = 2**53 - 1
"""Integers beyond this do not survive every JSON reader (RFC 8259, section 6)."""

_LONGEST_NAME = 4_096
"""Characters of a path in a message: the longest path of Linux."""

_LONGEST = len(str(-_LARGEST))
"""Digits, with a sign, worth turning into a number at all."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as plain JSON values, with the line of every value counted from 1."""

    name: str
    value: Any
    lines: dict[Path_, int]

    def where(self, path: Path_ = ()) -> Location:
        """The place of a value, or of its nearest parent that is written down."""
        known = path
        while known not in self.lines and known:
            known = known[:-1]
        name = ".".join(str(part) for part in path)
        return Location(self.name, self.lines.get(known), name or None)


def shown(name: str, limit: int = 200) -> str:
    """A name fit for a message: one line, no control characters, not longer than `limit`."""
    clean = "".join(character if character.isprintable() else "?" for character in name[: limit + 1])
    return clean if len(clean) <= limit else clean[:limit] + "…"


def read_bytes(path: Path, limit: int, name: str | None = None) -> bytes:
    """All bytes of a regular file of at most `limit` bytes. Raises GatherError."""
    title = shown(name or str(path))
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            return _read_all(file, limit, title)
    except OSError as error:
        raise _unreadable(title, error) from error


def _read_all(file: BinaryIO, limit: int, name: str) -> bytes:
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise GatherError(f"`{name}` is not a regular file", remedy="name a file")
    data = file.read(limit + 1)
    if len(data) > limit:
        raise GatherError(
            f"`{name}` is larger than {limit} bytes", remedy="split it, or raise the limit in the settings"
        )
    return data


def _unreadable(name: str, error: OSError) -> GatherError:
    reason = (error.strerror or "cannot be read").lower()
    return GatherError(f"cannot read `{name}`: {reason}", remedy="check the path and its permissions")


@contextmanager
def open_beneath(root: int, relative: str) -> Iterator[BinaryIO]:
    """Open a regular file below the folder descriptor `root`, following no link anywhere.

    Raises FileNotFoundError when it is not there and GatherError when the path leaves the folder,
    passes a link, or names no regular file.
    """
    parts = relative.split("/")
    if not relative or "\0" in relative or "\\" in relative or any(part in {"", ".", ".."} for part in parts):
        raise GatherError(
            f"the path `{shown(relative)}` leaves its folder",
            remedy="give a path below the folder, with `/` and without `..`",
        )
    descriptor = _opened_beneath(root, relative, parts)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise GatherError(f"`{shown(relative)}` is not a regular file", remedy="replace it by a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _opened_beneath(root: int, relative: str, parts: list[str]) -> int:
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = deeper
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        return os.open(parts[-1], flags, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise GatherError(
            f"cannot read `{shown(relative)}`: it is a link, passes one, or may not be read",
            remedy="replace links by the files themselves and check permissions",
        ) from error
    finally:
        os.close(folder)


def load(data: bytes, name: str, limits: ReadLimits) -> Document:
    """Read one YAML 1.2 (or JSON) document into plain JSON values.

    Refuses, with the line: what is not UTF-8 or not YAML, duplicate or non-string keys, anchors,
    aliases, merge keys, tags, numbers with two readings (`017`, `1_000`, `.nan`), integers beyond
    2^53, more than one document, and anything past `limits`. Raises GatherError.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _refused(name, line, "is not UTF-8 text", "save the file as UTF-8") from error
    if len(data) > limits.document_bytes:
        raise _refused(name, None, f"is larger than {limits.document_bytes} bytes", "split it")
    if text.lstrip()[:1] in {"{", "["}:
        with suppress(ValueError, RecursionError):  # not JSON: perhaps YAML in flow style
            return Document(name, _json(text, name, limits), {(): 1})
    return _Reader(text, name, limits).document()


def _json(text: str, name: str, limits: ReadLimits) -> Any:
    """Strict JSON, for what YAML cannot read: escaped surrogate pairs. Raises ValueError when it is not."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(items)) != len(items):
            raise _refused(name, None, "has a key twice", "keep one of them")
        return found

    def integer(digits: str) -> int:
        if len(digits) > _LONGEST or abs(number := int(digits)) > _LARGEST:
            raise _refused(name, None, "has an integer beyond 2^53", "quote it if it is text")
        return number

    def constant(_: str) -> None:
        raise _refused(name, None, "has a number that is not finite", "use a finite number")

    def number(digits: str) -> float:
        if abs(value := float(digits)) > _LARGEST:
            raise _refused(name, None, "has a number that is too large", "quote it if it is text")
        return value

    value = json.loads(text, object_pairs_hook=pairs, parse_int=integer, parse_float=number, parse_constant=constant)
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    _measure(value, name, limits)
    return value


def _measure(value: Any, name: str, limits: ReadLimits) -> None:
    level, deepest, nodes = [value], 0, 0
    while level:
        deepest, nodes = deepest + 1, nodes + len(level)
        if deepest > limits.depth + 1:
            raise _refused(name, None, f"is nested deeper than {limits.depth}", "flatten it")
        if nodes > limits.nodes:
            raise _refused(name, None, f"has more than {limits.nodes} values", "split the file")
        level = [child for parent in level for child in _children(parent)]


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refused(name: str, line: int | None, message: str, remedy: str) -> GatherError:
    return GatherError(f"the document {message}", remedy=remedy, where=Location(shown(name, _LONGEST_NAME), line))


class _Reader:
    """Builds values from YAML events; one method for each kind of node."""

    def __init__(self, text: str, name: str, limits: ReadLimits) -> None:
        self._name = name
        self._limits = limits
        self._lines: dict[Path_, int] = {}
        self._nodes = 0
        self._text = text

    def document(self) -> Document:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        try:
            events = iter(YAML(typ="safe").parse(self._text))
            next(events)  # stream start
            first = next(events)
            if type(first).__name__ == "StreamEndEvent":
                raise _refused(self._name, None, "is empty", "write a document into it")
            value = self._value(next(events), events, (), 0)
            next(events)  # document end
            if type(after := next(events)).__name__ != "StreamEndEvent":
                raise self._refuse(after, "holds more than one document", "keep one document a file")
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = None if mark is None else mark.line + 1
            reason = getattr(error, "problem", None) or "cannot be parsed"
            raise _refused(self._name, line, f"is not YAML: {reason}", "correct the syntax") from error
        except (ValueError, RecursionError) as error:
            raise _refused(self._name, None, "is not YAML", "correct the syntax") from error
        return Document(self._name, value, self._lines)

    def _refuse(self, event: Any, message: str, remedy: str) -> GatherError:
        return _refused(self._name, event.start_mark.line + 1, message, remedy)

    def _value(self, event: Any, events: Iterator[Any], path: Path_, depth: int) -> Any:
        kind = type(event).__name__
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            raise self._refuse(event, f"has more than {self._limits.nodes} values", "split the file")
        if depth > self._limits.depth:
            raise self._refuse(event, f"is nested deeper than {self._limits.depth}", "flatten it")
        if kind == "AliasEvent" or event.anchor is not None:
            raise self._refuse(event, "uses an anchor or alias", "write the value out")
        if event.tag is not None:
            raise self._refuse(event, "uses a tag", "write a plain value")
        self._lines[path] = event.start_mark.line + 1
        if kind == "ScalarEvent":
            return self._scalar(event)
        if kind == "SequenceStartEvent":
            items: list[Any] = []
            while type(item := next(events)).__name__ != "SequenceEndEvent":
                items.append(self._value(item, events, (*path, len(items)), depth + 1))
            return items
        return self._mapping(events, path, depth)

    def _mapping(self, events: Iterator[Any], path: Path_, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while type(event := next(events)).__name__ != "MappingEndEvent":
            if type(event).__name__ != "ScalarEvent" or event.anchor is not None or event.tag is not None:
                raise self._refuse(event, "has a key that is not plain text", "use a plain key")
            key = event.value
            if key == "<<":
                raise self._refuse(event, "uses a merge key", "write the values out")
            if key in mapping:
                raise self._refuse(event, f"has the key `{shown(key, 80)}` twice", "keep one of them")
            mapping[key] = self._value(next(events), events, (*path, key), depth + 1)
        return mapping

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if not event.implicit[0]:  # quoted or block text
            return self._string(event, text)
        if text.lower() in _WORDS and text in {text.lower(), text.title(), text.upper()}:
            return _WORDS[text.lower()]
        if _INTEGER.match(text):
            if len(text) > _LONGEST or abs(int(text)) > _LARGEST:
                raise self._refuse(event, "has an integer beyond 2^53", "quote it if it is text")
            return int(text)
        if _FLOAT.match(text):
            if abs(number := float(text)) > _LARGEST:
                raise self._refuse(event, "has a number that is too large", "quote it if it is text")
            return number
        if _ODD_NUMBER.match(text):
            raise self._refuse(event, f"has `{shown(text, 40)}`, which readers take for different values", "quote it")
        return self._string(event, text)

    def _string(self, event: Any, text: str) -> str:
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise self._refuse(event, "has half of a surrogate pair", "write the whole character")
        return text
