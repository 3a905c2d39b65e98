"""Reads untrusted files: limits on size and depth; no aliases, duplicate keys or ambiguous numbers; line positions.

YAML and JSON go through one reader of YAML 1.2 events, so both have the same limits and every
value keeps its line. ruamel.yaml is imported here only.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from engine.documents.strict_json import (
    MAX_SAFE_INTEGER,
    AmbiguousJsonError,
    NotJsonError,
    RepeatedKeyError,
    levels_of,
    read_strict,
)
from engine.errors import GatherError, Location, reason_of
from engine.settings import ReadLimits

Path_ = tuple[str | int, ...]
"""The way to a value in a document: keys and list indexes from the root."""

_INTEGER = re.compile(r"^-?(0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$")
_ODD_NUMBER = re.compile(
    r"^[-+]?(\.inf|\.nan|[0-9][0-9_]*|0b[01_]+|0o[0-7_]+|0x[0-9a-f_]+|[0-9_]*\.[0-9_]*(e[-+]?[0-9]+)?)$", re.IGNORECASE
)
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_SYNTAX = "correct the syntax: indent with spaces, and quote text that has `:`, `#`, `*` or brackets"
_JSON_SYNTAX = (
    "correct the syntax: keys and texts in double quotes, a comma between two entries and none after the last"
)
_LONGEST_NAME = 4_096
"""Characters of a path in a message: the longest path of Linux."""

_LONGEST = len(str(-MAX_SAFE_INTEGER))
"""Maximum length of a number, sign included."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A value of a document and its position; None if it is missing. `note` says what is wrong with it.

    A request that is no file has no position.
    """

    where: Location | None
    value: Any
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document as plain JSON values, with the line of every value counted from 1."""

    name: str
    value: Any
    lines: dict[Path_, int]

    def where(self, path: Path_ = ()) -> Location:
        """The position of a value, or of its nearest parent that has one."""
        known = path
        while known not in self.lines and known:
            known = known[:-1]
        name = ".".join(str(part) for part in path)
        return Location(self._file(known), self.lines.get(known), name or None)

    def _file(self, path: Path_) -> str:  # noqa: ARG002
        """The name of the file that has this path."""
        return self.name

    def stated(self, path: Path_) -> Stated:
        """The value at a path; of a path that goes below a plain value, that value."""
        value, known = self.value, 0
        for known, part in enumerate(path):
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int):
                value = value[part] if part < len(value) else None
            else:
                return Stated(self.where(path[:known]), value)
            if value is None:
                return Stated(self.where(path[: known + 1]), None)
        return Stated(self.where(path), value)


def printable(name: str, limit: int = 200) -> str:
    """A name fit for a message: one line, no control characters, not longer than `limit`."""
    clean = name[: limit + 1]
    if not clean.isprintable():
        clean = "".join(character if character.isprintable() else "?" for character in clean)
    return clean if len(clean) <= limit else clean[:limit] + "…"


def counted(number: int, what: str) -> str:
    """A number of things, by the word for one of them."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def read_bytes(path: Path | str, limit: int, name: str | None = None) -> bytes:
    """All bytes of a regular file of at most `limit` bytes. Raises GatherError."""
    title = printable(name or str(path))
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            return _read_all(file, limit, title)
    except OSError as error:
        raise unreadable(title, error) from error


def _read_all(file: BinaryIO, limit: int, name: str) -> bytes:
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise GatherError(f"`{name}` is not a regular file", remedy="name a file")
    data = file.read(limit + 1)
    if len(data) > limit:
        raise GatherError(
            f"`{name}` is larger than {limit} bytes",
            remedy="split it; a program may raise the limit in `Settings.read`",
        )
    return data


def unreadable(name: str, error: OSError) -> GatherError:
    """The error for a path that the system does not read, with the system's reason."""
    reason = reason_of(error)
    return GatherError(f"cannot read `{printable(name)}`: {reason}", remedy="check the path and its permissions")


@contextmanager
def opened_folder(folder: Path, *, alone: bool = False) -> Iterator[int]:
    """A descriptor of the folder; `alone`: while it is open, no other process or thread has it so. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if alone:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def open_beneath(root: int, relative: str) -> io.BufferedReader:
    """Open a regular file below the folder descriptor `root`, following no link anywhere.

    Raises FileNotFoundError if it does not exist, and GatherError if the path leaves the folder,
    passes through a link, or is not a regular file.
    """
    parts = relative.split("/")
    if not relative or "\0" in relative or "\\" in relative or any(part in {"", ".", ".."} for part in parts):
        raise GatherError(
            f"the path `{printable(relative)}` leaves its folder",
            remedy="give a path below the folder, with `/` and without `..`",
        )
    descriptor = _opened_beneath(root, relative, parts)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise GatherError(f"`{printable(relative)}` is not a regular file", remedy="replace it with a regular file")
    return os.fdopen(descriptor, "rb")


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
            f"cannot read `{printable(relative)}`: it is a link, passes one, or may not be read",
            remedy="replace links with the files themselves, and check permissions",
        ) from error
    finally:
        os.close(folder)


def load(
    data: bytes, name: str, limits: ReadLimits, empty: str = "write its fields", *, json_lines: bool = False
) -> Document:
    """Read one YAML 1.2 (or JSON) document into plain JSON values.

    Refuses, with the line: text that is not UTF-8 or not YAML, duplicate or non-string keys, anchors,
    aliases, merge keys, tags, numbers with two readings (`017`, `1_000`, `.nan`), integers beyond
    2^53, more than one document, and anything past `limits`. Raises GatherError. `empty` is what to do about a
    text that has no document, or nothing but comments. `json_lines` also finds the lines in JSON, which takes as long
    as reading YAML.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _refused(name, line, "is not UTF-8 text", "save the file as UTF-8") from error
    if len(data) > limits.document_bytes:
        raise _refused(name, None, f"is larger than {limits.document_bytes} bytes", "split it")
    if text.lstrip()[:1] in {"{", "["}:
        with suppress(NotJsonError):  # perhaps YAML in flow style
            value = _json(text, name, limits)
            lines: dict[Path_, int] = {(): 1}
            with suppress(GatherError):  # YAML has no escaped surrogate pairs
                lines = _Reader(text, name, limits, empty).document().lines if json_lines else lines
            return Document(name, value, lines)
    return _Reader(text, name, limits, empty).document()


def _json(text: str, name: str, limits: ReadLimits) -> Any:
    """Strict JSON, for what YAML cannot read: escaped surrogate pairs. Raises NotJsonError."""
    try:
        value = read_strict(text, levels=limits.depth, largest=MAX_SAFE_INTEGER)
    except AmbiguousJsonError as error:
        raise _refused(name, _line_of(error), problem_of(error), error.remedy) from error
    _measure(value, name, limits)
    return value


def problem_of(error: AmbiguousJsonError) -> str:
    """The problem of a text, as a predicate: a key that is there twice by its name."""
    if isinstance(error, RepeatedKeyError):
        return f"has the key `{printable(error.place()[0])}` twice"
    return error.problem


def _line_of(error: AmbiguousJsonError) -> int:
    return error.place()[1] if isinstance(error, RepeatedKeyError) else 1


def _measure(value: Any, name: str, limits: ReadLimits) -> None:
    nodes = 0
    for level in levels_of(value):
        nodes += len(level)
        if nodes > limits.nodes:
            raise _refused(name, None, f"has more than {limits.nodes} values", "split the file")


def _refused(name: str, line: int | None, message: str, remedy: str) -> GatherError:
    return GatherError(f"the document {message}", remedy=remedy, where=Location(printable(name, _LONGEST_NAME), line))


class _Reader:
    """Builds values from YAML events; one method for each kind of node."""

    def __init__(self, text: str, name: str, limits: ReadLimits, empty: str) -> None:
        self._name = name
        self._empty = empty
        flow = text.lstrip()[:1] in {"{", "["} and not name.endswith((".yaml", ".yml"))
        self._is_json = flow or name.endswith(".json")
        self._limits = limits
        self._lines: dict[Path_, int] = {}
        self._nodes = 0
        self._text = text

    def document(self) -> Document:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        text = io.StringIO(self._text)
        try:
            events = iter(YAML(typ="safe").parse(text))
            next(events)  # stream start
            first = next(events)
            if type(first).__name__ == "StreamEndEvent":
                raise _refused(self._name, None, "is empty", self._empty)
            value = self._value(next(events), events, (), 0)
            next(events)  # document end
            if type(after := next(events)).__name__ != "StreamEndEvent":
                raise self._refuse(after, "holds more than one document", "keep one document per file")
        except YAMLError as error:
            raise self._broken(error) from error
        except (ValueError, RecursionError) as error:
            raise self._broken(None) from error
        finally:
            text.close()  # the parser is part of a cycle, and would keep the text until that is collected
        return Document(self._name, value, self._lines)

    def _broken(self, error: Any) -> GatherError:
        """What is wrong with the syntax, as a reader of JSON says it where this is meant to be JSON."""
        mark = getattr(error, "problem_mark", None)
        line, reason = mark and mark.line + 1, getattr(error, "problem", None)
        if self._is_json:
            try:
                json.loads(self._text)
            except json.JSONDecodeError as wrong:
                line, reason = wrong.lineno, f"{wrong.msg[:1].lower()}{wrong.msg[1:]}, column {wrong.colno}"
            except (ValueError, RecursionError):
                pass  # the other reader has found something too
        what, remedy = ("is not JSON", _JSON_SYNTAX) if self._is_json else ("is not YAML", _SYNTAX)
        return _refused(self._name, line, f"{what}: {reason}" if reason else what, remedy)

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
                raise self._refuse(event, f"has the key `{printable(key, 80)}` twice", "keep one of them")
            mapping[key] = self._value(next(events), events, (*path, key), depth + 1)
            if isinstance(mapping[key], dict | list):  # it begins below its key
                self._lines[*path, key] = event.start_mark.line + 1
        return mapping

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if not event.implicit[0]:  # quoted or block text
            return self._string(event, text)
        if text.lower() in _WORDS and text in {text.lower(), text.title(), text.upper()}:
            return _WORDS[text.lower()]
        if _INTEGER.match(text):
            if len(text) > _LONGEST or abs(int(text)) > MAX_SAFE_INTEGER:
                raise self._refuse(event, "has an integer beyond 2^53", "quote it if it is text")
            return int(text)
        if _FLOAT.match(text):
            if abs(number := float(text)) > MAX_SAFE_INTEGER:
                raise self._refuse(event, "has a number that is too large", "quote it if it is text")
            return number
        if _ODD_NUMBER.match(text):
            raise self._refuse(
                event,
                f"has `{printable(text, 40)}`, which YAML readers interpret differently",
                "quote it if it is text, or write a finite decimal number",
            )
        return self._string(event, text)

    def _string(self, event: Any, text: str) -> str:
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise self._refuse(event, "contains an unpaired surrogate", "write the whole character")
        return text
