"""What tools return, as text and JSON: each type has one form, and a type without one says what to return instead.

text, numbers, truth values, None, lists, mappings   as they are; sets and tuples as lists
dates and times, durations                           ISO 8601; seconds
Decimal, UUID, paths, members of an Enum             text; their value
dataclasses, named tuples, pydantic models           a mapping of their fields
iterators, generators, also asynchronous ones        the text that their pieces make, else a list
bytes as the whole result                            their digest; within another value they have no form
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from admission_adapters.tools.outcome import ToolValidationError

DEPTH, PIECES = 64, 100_000
"""Levels of a value, and values of one list or stream; what is larger is not for a model."""

_RETURN = "return text, numbers, lists, mappings, dates, dataclasses, pydantic models or an iterator of these"


def whole(value: Any) -> Any:
    """The form of a result; the bytes of one that is bytes. Raises ToolValidationError for a type without a form.

    An iterator is read to its end here, so within the time limit of the call.
    """
    return value if isinstance(value, (str, bytes, bytearray, memoryview)) else _form(value, DEPTH)


async def gathered(value: AsyncIterator[Any]) -> list[Any]:
    """The pieces of an asynchronous iterator, on the loop of its tool. Raises ToolValidationError for too many."""
    found: list[Any] = []
    async for piece in value:
        _counted(found)
        found.append(piece)
    return found


def joined(pieces: list[Any]) -> Any:
    """The text that pieces of text make; any other pieces are a list."""
    return "".join(pieces) if pieces and all(isinstance(piece, str) for piece in pieces) else pieces


def _form(value: Any, depth: int) -> Any:  # noqa: PLR0911  (one line for each type)
    if depth == 0:
        raise _unsupported(f"the result is nested deeper than {DEPTH} levels", "return a flatter value")
    if isinstance(value, Enum):
        return _form(value.value, depth - 1)
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (Decimal, UUID, PurePath)):
        return str(value)
    if (fields := _fields(value)) is not None:
        return {_key(name): _form(one, depth - 1) for name, one in fields.items()}
    if isinstance(value, Iterator):
        return joined(_listed(value, depth))
    if isinstance(value, (list, tuple, AbstractSet)):
        return _listed(iter(value), depth)
    raise _unsupported(
        f"the tool returned a value of type `{type(value).__name__}`, which has no form as text", _RETURN
    )


def _fields(value: Any) -> Mapping[Any, Any] | None:
    """The fields of a mapping, dataclass, named tuple or pydantic model."""
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(type(value)):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json")  # type: ignore[no-any-return]
    return None


def _key(name: Any) -> str:
    plain = name.value if isinstance(name, Enum) else name
    if isinstance(plain, (str, int, UUID, date)) and not isinstance(plain, bool):
        return str(plain)
    raise _unsupported(f"the result has a key of type `{type(name).__name__}`", "use text or numbers as keys")


def _listed(values: Iterator[Any], depth: int) -> list[Any]:
    found: list[Any] = []
    for one in values:
        _counted(found)
        found.append(_form(one, depth - 1))
    return found


def _counted(found: list[Any]) -> None:
    if len(found) == PIECES:
        raise _unsupported(f"the result has more than {PIECES} values in one list", "return fewer, such as one page")


def _unsupported(what: str, instead: str) -> ToolValidationError:
    return ToolValidationError("result_unsupported", f"{what}; its developer has to change this: {instead}")
