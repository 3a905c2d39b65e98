"""One value in the text of a YAML document, changed or removed: every other line stays, with its comments.

The text is cut at the marks of the parser and read again. A change that would say anything else than what is wanted is
refused. Where a list only grows or shrinks, only its items are added and removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from engine.documents.files import load
from engine.errors import GatherError
from engine.settings import ReadLimits

Keys = tuple[str, ...]

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+@-]*(?: [A-Za-z0-9_./+@-]+)*", re.ASCII)
_WORDS = {"y", "yes", "n", "no", "on", "off", "true", "false", "null"}
_COMMENT = re.compile(r"(?:^|\s)#", re.MULTILINE)


def changed(text: str, path: Keys, value: Any) -> str:
    """The text with this JSON value at a path of keys, which is added where it is missing. Raises GatherError."""
    before = _read(text)
    expected = before if isinstance(before, dict) else {}
    expected, at = _copied(expected, path[:-1])
    old = at.get(path[-1])
    at[path[-1]] = value
    return _checked(_set(text, path, value, old), expected)


def removed(text: str, path: Keys) -> str:
    """The text without the key at a path, which is there. Raises GatherError."""
    expected, at = _copied(_read(text), path[:-1])
    if path[-1] not in at:
        raise _refused("the file does not have it")
    del at[path[-1]]
    return _checked(_without(text, path), expected)


def _read(text: str) -> Any:
    """What a text says; an object without keys for one of comments alone."""
    return load(text.encode("utf-8"), "the file", ReadLimits()).value if _composed(text) is not None else {}


def _copied(document: Any, path: Keys) -> tuple[Any, dict[str, Any]]:
    """A copy of a document, and the object at a path in it, which is made where it is missing."""
    copy = deepcopy(document)
    at = copy
    for key in path:
        if not isinstance(at, dict):
            raise _refused("something else is in its place")
        if at.get(key) is None:
            at[key] = {}
        at = at[key]
    if not isinstance(at, dict):
        raise _refused("something else is in its place")
    return copy, at


def _checked(text: str, expected: Any) -> str:
    if _read(text) != expected:
        raise _refused("its lines have a form that only a person can change")
    return text


def _refused(reason: str) -> GatherError:
    return GatherError(f"this value cannot be changed by itself: {reason}", remedy="edit the text of the file")


def _composed(text: str) -> Any:
    """The nodes of a text with their places; None without any."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).compose(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise _refused("the file is not YAML") from error


def _set(text: str, path: Keys, value: Any, old: Any) -> str:
    node, rest, key = _composed(text), path, None
    if node is None:
        return text + ("" if text.endswith("\n") or not text else "\n") + _lines(rest, value, 0)
    while rest:
        child = next((entry for entry in _entries(node) if entry[0].value == rest[0]), None)
        if child is None:
            return _added(text, key, node, rest, value)
        (key, node), rest = child, rest[1:]
    if node.id == "sequence" and isinstance(value, list) and (spliced := _spliced(text, path, old, value)) is not None:
        return spliced
    return _replaced(text, key, node, value)


def _entries(node: Any) -> list[tuple[Any, Any]]:
    return list(node.value) if node.id == "mapping" else []


def _end(text: str, node: Any) -> int:
    """Where the last character of a value is over; the parser counts what follows a block to it."""
    if node.id != "scalar" and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if node.id == "mapping" else last)
    if node.id == "scalar" and node.style in {"|", ">"}:
        return int(node.start_mark.index) + len(text[node.start_mark.index : node.end_mark.index].rstrip())
    return int(node.end_mark.index)


def _after_line(text: str, at: int) -> int:
    """The begin of the line after this place."""
    return text.find("\n", at) + 1 or len(text)


def _begin_of_line(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _replaced(text: str, key: Any, node: Any, value: Any) -> str:
    """The text with another value at a node, whose key is None at the root."""
    start, end = int(node.start_mark.index), _end(text, node)
    if start == end and key is not None:  # no value is written: the parser places it behind what follows
        at = text.index(":", key.end_mark.index) + 1
        return f"{text[:at]} {_flow(value)}{text[at:]}"
    if node.id != "scalar" and _COMMENT.search(text[start:end]):
        raise _refused("there are comments in it")
    quoted = node.id == "scalar" and node.style in {"'", '"'}
    new = json.dumps(value, ensure_ascii=False) if quoted and isinstance(value, str) else _flow(value)
    return text[:start] + new + text[end:]


def _added(text: str, key: Any, node: Any, rest: Keys, value: Any) -> str:
    """The text with a new key in a mapping, or in place of a null."""
    if node.id != "mapping":
        if node.id == "scalar" and node.value in {"", "null", "~"}:
            return _replaced(text, key, node, _nested(rest, value))
        raise _refused("something else is in its place")
    entries = _entries(node)
    if node.flow_style or not entries:
        entry = f"{scalar(rest[0])}: {_flow(_nested(rest[1:], value))}"
        at = int(entries[-1][1].end_mark.index if entries else node.start_mark.index + 1)
        return text[:at] + (", " if entries else "") + entry + text[at:]
    at = _after_line(text, _end(text, entries[-1][1]))
    newline = "" if text[:at].endswith("\n") else "\n"
    return text[:at] + newline + _lines(rest, value, int(entries[0][0].start_mark.column)) + text[at:]


def _spliced(text: str, path: Keys, old: Any, new: list[Any]) -> str | None:
    """The text of a list without some of its items and with further ones at its end; None where that is not all."""
    if not isinstance(old, list) or any(isinstance(one, dict | list) for one in [*old, *new]):
        return None
    kept, flow = [one for one in old if one in new], bool(_at(text, path).flow_style)
    if kept != new[: len(kept)] or len({*map(str, new)}) < len(new) or not (kept or flow):
        return None
    spans = _spans(text, path)
    stays = [one in new for one in old]
    if flow:
        text = _cut(text, _uncommented(text, _flow_cuts(spans, stays)))
    else:
        out = [span for span, stay in zip(spans, stays, strict=True) if not stay]
        text = _cut(text, [(_begin_of_line(text, start), _after_line(text, end)) for start, end in out])
    return _appended(text, path, new[len(kept) :])


def _appended(text: str, path: Keys, items: list[Any]) -> str:
    """The text with further items at the end of a list, which has some if it is a block."""
    node, spans = _at(text, path), _spans(text, path)
    if node.flow_style:
        at = spans[-1][1] if spans else int(node.start_mark.index) + 1
        new = ", ".join(map(_flow, items))
        return text[:at] + (", " if spans and items else "") + new + text[at:]
    at = _after_line(text, spans[-1][1])
    newline = "\n" if items and not text[:at].endswith("\n") else ""
    pad = " " * int(node.start_mark.column)
    return text[:at] + newline + "".join(f"{pad}- {_flow(one)}\n" for one in items) + text[at:]


def _at(text: str, path: Keys) -> Any:
    """The node at a path that the text has."""
    node = _composed(text)
    for key in path:
        node = next(item for found, item in _entries(node) if found.value == key)
    return node


def _spans(text: str, path: Keys) -> list[tuple[int, int]]:
    """Where the items of a list begin and end."""
    return [(int(item.start_mark.index), _end(text, item)) for item in _at(text, path).value]


def _flow_cuts(spans: Sequence[tuple[int, int]], stays: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """What to cut of `[a, b, c]` so that only some items stay: each with the comma after or before it."""
    for at, (start, end) in enumerate(spans):
        if stays[at]:
            continue
        if any(stays[at + 1 :]):
            yield start, spans[at + 1][0]
        else:
            yield (spans[at - 1][1] if at else start), end


def _uncommented(text: str, spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans. Raises GatherError for one with a comment, which would be lost."""
    found = list(spans)
    if any(_COMMENT.search(text[start:end]) for start, end in found):
        raise _refused("there are comments in it")
    return found


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def _without(text: str, path: Keys) -> str:
    node = _at(text, path[:-1])
    entries = _entries(node)
    at = next(number for number, (key, _) in enumerate(entries) if key.value == path[-1])
    spans = [(int(key.start_mark.index), _end(text, item)) for key, item in entries]
    if node.flow_style:
        return _cut(text, _uncommented(text, _flow_cuts(spans, [number != at for number in range(len(entries))])))
    if len(entries) == 1:
        return _replaced(text, None, node, {})
    return _cut(text, [(_begin_of_line(text, spans[at][0]), _after_line(text, spans[at][1]))])


def _nested(rest: Keys, value: Any) -> Any:
    for key in reversed(rest):
        value = {key: value}
    return value


def _lines(rest: Keys, value: Any, column: int) -> str:
    """A new entry of a block on one line; a new section of the file has a line for its first row."""
    if column == 0 and len(rest) > 1:
        return f"{scalar(rest[0])}:\n{_lines(rest[1:], value, 2)}"
    return f"{' ' * column}{scalar(rest[0])}: {_flow(_nested(rest[1:], value))}\n"


def _flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return scalar(value) if isinstance(value, str) else json.dumps(value)


def scalar(text: str) -> str:
    """A text as YAML reads it back: plain where every reader agrees on it, else quoted as in JSON."""
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
