"""pydantic's errors as problems a person can act on: the place, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from engine.errors import Location, Problem
from engine.files import Document, shown

_MESSAGES = {
    "extra_forbidden": "`{field}` is not known here",
    "missing": "`{field}` is missing",
    "literal_error": "`{field}` must be {expected}",
    "string_too_short": "`{field}` is empty",
}
_REMEDIES = {
    "extra_forbidden": "correct the spelling or remove it",
    "missing": "write it",
}


def problems(
    error: ValidationError, document: Document, *, first_line: int = 1, remedies: Mapping[str, str] | None = None
) -> Iterator[Problem]:
    """Every error as a problem at its line; `remedies` by dotted field come before the usual ones.

    `first_line` is the line of the file at which the document begins.
    """
    for found in error.errors(include_url=False):
        path = _path(found["loc"], document.value, missing=found["type"] in {"missing", "extra_forbidden"})
        field = ".".join(map(str, path))
        where = document.where(path)
        line = None if where.line is None else where.line + first_line - 1
        context: dict[str, Any] = found.get("ctx", {})
        text = _MESSAGES.get(found["type"], "`{field}`: {text}")
        message = text.format(
            field=shown(field) or "document", expected=context.get("expected"), text=_plain(found["msg"])
        )
        named = ".".join(part for part in path if isinstance(part, str))
        remedy = (remedies or {}).get(named) or _REMEDIES.get(found["type"], "correct the value")
        yield Problem(Location(where.file, line, None if field == "" else shown(field)), message, remedy)


def _path(loc: tuple[str | int, ...], value: Any, *, missing: bool) -> tuple[str | int, ...]:
    """The part of pydantic's location that names a place in the document; it also names types."""
    path: list[str | int] = []
    for index, part in enumerate(loc):
        here: Any = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
        if part in here:
            value = here[part]
            path.append(part)
        elif missing and index == len(loc) - 1:
            path.append(part)
    return tuple(path)


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:]
