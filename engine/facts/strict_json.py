"""JSON text as every reader reads it alike, or the fact that there is no such reading.

The argument text of a tool call and JSON inside strings are read here. A key written twice, a number
without a JSON form, half a surrogate pair or endless nesting is read differently by different readers:
then nobody can say what the tool will be given, so there is no value at all.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

LEVELS = 128
"""Nested objects and lists; Python's own reader ends at about 1,000 and schemas need fewer than 10."""

LARGEST = 2**53 - 1
"""Numbers beyond this do not survive every JSON reader (RFC 8259, section 6)."""

_DIGITS = 4_000
"""Digits of a number; Python turns no more than 4,300 into one."""

_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKET = bytes(byte for byte in range(256) if byte not in _STEP)


class NotJsonError(ValueError):
    """The text is not JSON at all."""


class AmbiguousJsonError(ValueError):
    """The text looks like JSON, and readers would not agree on its value."""


def read_strict(text: str) -> Any:
    """The one value of JSON text. Raises NotJsonError or AmbiguousJsonError, nothing else."""
    if _deeper_than(text, LEVELS):
        raise AmbiguousJsonError
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_decimal
        )
        if "\\u" in text or not text.isascii():
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # half a surrogate pair has no UTF-8
    except AmbiguousJsonError:
        raise
    except json.JSONDecodeError as error:
        raise NotJsonError from error
    except (ValueError, RecursionError) as error:
        raise AmbiguousJsonError from error
    return value


def _deeper_than(text: str, levels: int) -> bool:
    if text.count("[") + text.count("{") <= levels:
        return False
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    brackets = outside.encode("utf-8", "replace").translate(None, _NO_BRACKET)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > levels


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise AmbiguousJsonError
    return value


def _constant(_: str) -> Any:
    raise AmbiguousJsonError


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise AmbiguousJsonError
    return int(digits)


def _decimal(digits: str) -> float:
    number = float(digits)
    if not abs(number) < float("inf"):
        raise AmbiguousJsonError
    return number
