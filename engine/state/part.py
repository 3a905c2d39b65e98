"""What the parts of the SQLite store share: the open database, and the arguments that no caller gives."""

from __future__ import annotations

import json
import re

from engine.errors import StateError
from engine.state.database import Database
from engine.state.store import LARGEST, LONGEST_TEXT, StateLimits

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Part:
    """One part of the store, on a database that all parts share."""

    def __init__(self, database: Database, limits: StateLimits) -> None:
        self._database = database
        self._limits = limits


def whole(name: str, value: object) -> int:
    """An amount or a time: an integer, no bool, from 0 to 2^53. Raises ValueError."""
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise ValueError(f"{name} is an integer from 0 to 2^53")
    return value


def text(name: str, value: object, *, empty: bool = False) -> str:
    """A name, key or id: not long, with a UTF-8 form. Raises ValueError."""
    if type(value) is not str or not (0 if empty else 1) <= len(value) <= LONGEST_TEXT:
        raise ValueError(f"{name} is text of at most {LONGEST_TEXT} characters")
    return encodable(name, value)


def uuid_text(name: str, value: object) -> str:
    """A UUID in its one form, lower case with hyphens (RFC 9562). Raises ValueError."""
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
    if type(value) is not str or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{name} is text without half surrogate pairs")
    return value


def names(stored: str) -> tuple[str, ...]:
    """Names as they were kept, a JSON list. Raises StateError for anything else: no engine wrote it."""
    try:
        found = json.loads(stored)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise StateError("the state cannot be used: it is damaged", remedy="restore it from a backup, or move it aside")
    return tuple(found)
