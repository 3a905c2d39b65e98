"""Strict JSON: the one value that every reader finds in a text, or an error.

The argument text of a tool call, JSON inside strings, the output of programs and JSON documents are read here.
Readers disagree on a key written twice, a number without a JSON form, half a surrogate pair and endless nesting.
Such text has no value at all: the engine would decide on one value, and the tool would receive another.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from math import inf
from typing import Any

LEVELS = 128
"""Nested objects and lists; Python's own reader ends at about 1,000 and schemas need fewer than 10."""

MAX_SAFE_INTEGER = 2**53 - 1
"""Numbers beyond this do not survive every JSON reader (RFC 8259, section 6)."""

_DIGITS = 4_000
"""Digits of a number; Python converts no more than 4,300."""

_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_STRUCTURE = bytes(byte for byte in range(256) if byte not in {*_STEP, ord('"')})
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"(\s*:)?|[][{},]', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


class NotJsonError(ValueError):
    """The text is not JSON at all."""


class AmbiguousJsonError(ValueError):
    """The text looks like JSON, but readers disagree on its value: the problem and its remedy, as predicates."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class RepeatedKeyError(AmbiguousJsonError):
    """An object of a text has `key` twice."""

    def __init__(self, key: str) -> None:
        super().__init__("has a key twice", "keep one of them")
        self.key = key
        self.text = ""

    def place(self) -> tuple[str, int]:
        """The path of the first key that is there already, such as `calls.3.name`, and its line.

        This takes several times as long as reading the text.
        """
        return _second_key(self.text) or (self.key, 1)


def read_strict(text: str, *, levels: int = LEVELS, largest: float = inf) -> Any:
    """The one value of JSON text, with at most these levels and no number beyond `largest`.

    Raises NotJsonError or AmbiguousJsonError, nothing else.
    """
    if deeper_than(text.encode("utf-8", "replace"), levels):
        raise too_deep(levels)
    integer, decimal = partial(_integer, largest), partial(_decimal, largest)
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=integer, parse_float=decimal
        )
        (json.dumps(value, ensure_ascii=False) if "\\u" in text else text).encode("utf-8")
    except RepeatedKeyError as error:
        error.text = text
        raise
    except json.JSONDecodeError as error:
        raise NotJsonError from error
    except UnicodeEncodeError as error:
        raise unpaired() from error
    except RecursionError as error:
        raise too_deep(levels) from error
    return value


def levels_of(value: Any) -> Iterator[list[Any]]:
    """The values of a document level by level, so that depth costs no stack."""
    level = [value]
    while level:
        yield level
        inner = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [child for children in inner for child in children]


def nested_deeper(value: Any, levels: int) -> bool:
    """Whether objects and lists of a document are in more than so many others; what is in them counts too."""
    return any(depth > levels for depth, _ in enumerate(levels_of(value)))


def has_more_values(text: bytes | bytearray, limit: int) -> bool:
    """Whether JSON text may contain more values than this: each but the outermost follows one of `[`, `{` and `,`."""
    return _separators(text) > limit and _separators(_STRING.sub(b"", text)) > limit


def _separators(text: bytes | bytearray) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def deeper_than(text: bytes, levels: int) -> bool:
    """Whether brackets in JSON text are nested deeper than this."""
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text
    structure = unescaped.translate(None, _NO_STRUCTURE)
    # Two quotes side by side change nothing about which brackets are inside of strings.
    brackets = b"".join(structure.replace(b'""', b"").split(b'"')[::2])
    innermost = brackets.replace(b"[]", b"").replace(b"{}", b"")  # one or two levels less, and most of the text
    return _deepest(innermost) > levels - 2 and _deepest(brackets) > levels


def _deepest(brackets: bytes) -> int:
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def too_deep(levels: int) -> AmbiguousJsonError:
    """The error for text that is nested deeper than this."""
    return AmbiguousJsonError(f"is nested deeper than {levels}", "flatten it")


def unpaired() -> AmbiguousJsonError:
    """The error for half a surrogate pair."""
    return AmbiguousJsonError("contains an unpaired surrogate", "write the character as UTF-8")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise RepeatedKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return value


def _second_key(text: str) -> tuple[str, int] | None:
    """The path and line of the first key that is there already. Up to it, the text is JSON."""
    way: list[str | int] = []
    seen: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            way.append(0 if token[0] == "[" else "")
            seen.append(set())
        elif token[0] in "]}":
            del way[-1:], seen[-1:]
        elif token[1]:
            way[-1] = key = json.loads(token[0][: -len(token[1])])
            if key in seen[-1]:
                return ".".join(map(str, way)), text.count("\n", 0, token.start()) + 1
            seen[-1].add(key)
        elif token[0] == "," and isinstance(way[-1], int):
            way[-1] += 1
    return None


def _constant(_: str) -> Any:
    raise AmbiguousJsonError("has a number that is not finite", "use a finite number")


def _integer(largest: float, digits: str) -> int:
    if len(digits) > _DIGITS or abs(number := int(digits)) > largest:
        raise AmbiguousJsonError("has an integer beyond 2^53", "quote it if it is text")
    return number


def _decimal(largest: float, digits: str) -> float:
    number = float(digits)
    if abs(number) == inf or abs(number) > largest:
        raise AmbiguousJsonError("has a number that is too large", "quote it if it is text")
    return number
