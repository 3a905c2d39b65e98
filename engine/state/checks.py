"""What may be stored: checks of arguments, and the types of the fields of rows, which name them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from typing import Annotated, Any, get_args, get_type_hints

from engine.documents.strict_json import MAX_SAFE_INTEGER

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)

LONGEST_TEXT = 1_024
"""Characters of a name, key, principal or id: longer than any subject of a certificate in use."""


def whole(name: str, value: object) -> int:
    """An amount or a time: an integer, no bool, from 0 to 2^53. Raises ValueError."""
    if type(value) is not int or not 0 <= value <= MAX_SAFE_INTEGER:
        raise ValueError(f"{name} is an integer from 0 to 2^53")
    return value


def text(name: str, value: object, *, empty: bool = False) -> str:
    """A name, key or id: of limited length, with a UTF-8 form, without the NUL that ends a text. Raises ValueError."""
    if type(value) is not str or not (0 if empty else 1) <= len(value) <= LONGEST_TEXT or "\0" in value:
        raise ValueError(f"{name} is text of at most {LONGEST_TEXT} characters, without NUL")
    return encodable(name, value)


def uuid_text(name: str, value: object) -> str:
    """A UUID in canonical form, lower case with hyphens (RFC 9562). Raises ValueError."""
    if type(value) is not str or _UUID.fullmatch(value) is None:
        raise ValueError(f"{name} is a UUID in lower case")
    return value


def sha256_text(name: str, value: object) -> str:
    """A SHA-256 in lower-case hex. Raises ValueError."""
    if type(value) is not str or _SHA256.fullmatch(value) is None:
        raise ValueError(f"{name} is a SHA-256, 64 hex digits in lower case")
    return value


def encodable(name: str, value: object) -> str:
    """Text of any length that has a UTF-8 form. Raises ValueError."""
    if type(value) is not str or _SURROGATE.search(value):
        raise ValueError(f"{name} is text without half surrogate pairs")
    return value


Whole = Annotated[int, whole]
Text = Annotated[str, text]
TextOrEmpty = Annotated[str, partial(text, empty=True)]
LongText = Annotated[str, encodable]
Uuid = Annotated[str, uuid_text]
Sha256 = Annotated[str, sha256_text]


def demand_storable(row: Any) -> None:
    """Raise ValueError unless each field of a row is as its type says."""
    for name, check, optional in _checks(type(row)):  # type: ignore[arg-type]
        value = getattr(row, name)
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None or not optional:
                check(name, one)


@cache
def _checks(row: type[Any]) -> tuple[tuple[str, Callable[[str, object], object], bool], ...]:
    """The fields that have a check, and whether they may be None."""
    hints = get_type_hints(row, include_extras=True)
    typed = [(field.name, (hints[field.name], *get_args(hints[field.name]))) for field in fields(row)]
    return tuple(
        (name, one.__metadata__[0], type(None) in types)
        for name, types in typed
        for one in types
        if hasattr(one, "__metadata__")
    )
