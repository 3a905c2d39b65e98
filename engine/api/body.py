"""Strict JSON: request bodies without ambiguity, within limits, at a few microseconds per kilobyte.

The C parser runs first, and its result is walked once. It keeps the last of two equal keys, so keys are
counted: as many distinct keys as written means no duplicates. If that count is not reliable
(blanks before a colon, a colon in a string), the standard library's parser reads it again exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic_core import from_json

from engine.api.limits import ApiLimits
from engine.documents.canonical import RawJson
from engine.documents.files import printable
from engine.documents.strict_json import MAX_SAFE_INTEGER, has_more_values, unpaired
from engine.documents.validation import FieldsError
from engine.drive import off_loop
from engine.gather import HEAVY_BYTES
from engine.model import Pace

T = TypeVar("T")

_SPACED = re.compile(rb'"[ \t\r\n]+:')
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{65}")
"""Every number written longer than 64 characters has this."""


class InvalidBodyError(FieldsError):
    """A body that is not strict JSON."""

    code = "engine.json_invalid"


async def read_json(data: bytes, limits: ApiLimits) -> RawJson:
    """The body as checked JSON text. Raises InvalidBodyError."""
    await within(data, lambda: parse_json(data, limits))
    return RawJson(data)


async def within(data: bytes, read: Callable[[], T]) -> T:
    """What `read` makes of a body, in a thread where the body is large."""
    return read() if len(data) <= HEAVY_BYTES else await off_loop(read, Pace.HEAVY)


def parse_json(data: bytes, limits: ApiLimits, *, batch: bool = False) -> Any:
    """The value of a body. Raises InvalidBodyError."""
    if not data:
        raise InvalidBodyError("the body is empty", remedy="send a JSON document")
    if data.startswith(b"\xef\xbb\xbf"):
        raise InvalidBodyError("the body starts with a byte order mark", remedy="send UTF-8 without one")
    most = limits.batch_nodes if batch else limits.nodes
    if has_more_values(data, most):
        raise InvalidBodyError(f"the body has more than {most} values", remedy="split it into several requests")
    try:
        value = from_json(data, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise _unparsed(data, error) from error
    keys, numbers = _walk(value, limits)
    if numbers and (max(numbers) > MAX_SAFE_INTEGER or min(numbers) < -MAX_SAFE_INTEGER):
        raise _beyond(value, _is_large, "is a number beyond 2^53")
    if len(data) > limits.string_characters:
        _check_texts(value, limits)
    if keys != data.count(b'":') or _SPACED.search(data) or (numbers and _LONG_NUMBER.search(data)):
        _exactly(data, limits)
    return value


def _walk(value: Any, limits: ApiLimits) -> tuple[int, list[float]]:
    """How many keys there are, and all numbers. Raises InvalidBodyError for too many levels."""
    keys, depth = 0, 0
    level: list[Any] = [[value]]
    numbers: list[float] = []
    while level:
        if depth > limits.depth:
            raise InvalidBodyError(f"the body is nested deeper than {limits.depth}", remedy="flatten it")
        depth += 1
        below: list[Any] = []
        for parent in level:
            children: Iterable[Any] = parent
            if type(parent) is dict:
                keys += len(parent)
                children = parent.values()
            for child in children:
                kind = type(child)
                if kind is dict or kind is list:
                    below.append(child)
                elif kind is int or kind is float:
                    numbers.append(child)
        level = below
    return keys, numbers


def _is_large(item: Any) -> bool:
    kind = type(item)
    return (kind is int or kind is float) and not -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER


def _check_texts(value: Any, limits: ApiLimits) -> None:
    longest = limits.string_characters

    def wrong(item: Any) -> bool:
        return (type(item) is str and len(item) > longest) or (
            type(item) is dict and any(len(key) > longest for key in item)
        )

    if _find(value, wrong) is not None:
        raise _beyond(value, wrong, f"has a text or key longer than {longest} characters")


def _beyond(value: Any, wrong: Callable[[Any], bool], what: str) -> InvalidBodyError:
    name = printable(".".join(reversed(_find(value, wrong) or ["body"])))
    return InvalidBodyError(f"`{name}` {what}", remedy="shorten it; send a long number as text", fields=((name, what),))


def _find(value: Any, wrong: Callable[[Any], bool]) -> list[str] | None:
    """The path of the first value that is wrong, its last name first; `_walk` has bounded the depth."""
    if wrong(value):
        return []
    children = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for key, child in children:
        if (path := _find(child, wrong)) is not None:
            return [*path, str(key)]
    return None


def _exactly(data: bytes, limits: ApiLimits) -> None:
    """Read again with the parser that shows every key and every number as written."""

    def pairs(items: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in items:
            if key in seen:
                raise InvalidBodyError(
                    f"the body has the key `{printable(key, 80)}` twice",
                    remedy="keep one of them",
                    fields=((printable(key, 80), "occurs twice"),),
                )
            seen.add(key)

    def number(digits: str) -> None:
        if len(digits) > limits.number_characters:
            raise InvalidBodyError(
                f"a number is longer than {limits.number_characters} characters", remedy="send it as text, or shorter"
            )

    try:
        json.loads(data, object_pairs_hook=pairs, parse_int=number, parse_float=number)
    except InvalidBodyError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidBodyError("the body is not JSON", remedy="send one JSON document in UTF-8") from error


def _unparsed(data: bytes, error: ValueError) -> InvalidBodyError:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        return InvalidBodyError(f"the body is not UTF-8 at byte {wrong.start}", remedy="send it in UTF-8")
    text = str(error).lower()
    if "recursion" in text:
        return InvalidBodyError("the body is nested too deeply", remedy="flatten it")
    if "surrogate" in text or "end of hex escape" in text:
        return InvalidBodyError(f"the body {(half := unpaired()).problem}", remedy=half.remedy)
    place = re.search(r"at line (\d+) column (\d+)", text)
    at = "" if place is None else f" at line {place[1]}, column {place[2]}"
    return InvalidBodyError(f"the body is not JSON{at}", remedy="send one JSON document")
