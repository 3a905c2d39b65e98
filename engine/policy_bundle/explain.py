"""Documents as their models, and pydantic's errors as problems: the place, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from engine.documents.canonical import canonical
from engine.documents.files import Document, load, printable
from engine.errors import GatherError, Location, Problem
from engine.settings import ReadLimits

ModelT = TypeVar("ModelT", bound=BaseModel)

_MESSAGES = {
    "extra_forbidden": "`{field}` is not a known field",
    "missing": "`{field}` is missing",
    "literal_error": "`{field}` must be {expected}",
    "string_too_short": "`{field}` is empty",
}
_REMEDIES = {
    "extra_forbidden": "correct the spelling or remove it",
    "missing": "write it",
}


def read(data: bytes, name: str, found: list[Problem]) -> Document | None:
    """The document in these bytes, or None with the reason added to `found`."""
    try:
        return load(data, name, ReadLimits())
    except GatherError as error:
        found.append(Problem(error.where or Location(name), error.message, error.remedy))
        return None


def validated(
    model: type[ModelT],
    document: Document | None,
    found: list[Problem],
    *,
    first_line: int = 1,
    remedies: Mapping[str, str] | None = None,
) -> ModelT | None:
    """The document as its model, or None with the reasons added to `found`.

    `remedies` by dotted field come before the usual ones; `first_line` is the line of the file at which the
    document begins. No document, which is a problem already, is no model.
    """
    if document is None:
        return None
    try:
        return model.model_validate_json(canonical(document.value))
    except ValidationError as error:
        found.extend(_problems(error, document, first_line, remedies or {}))
        return None


def _problems(
    error: ValidationError, document: Document, first_line: int, remedies: Mapping[str, str]
) -> Iterator[Problem]:
    for found in error.errors(include_url=False):
        path = _path(found["loc"], document.value, missing=found["type"] in {"missing", "extra_forbidden"})
        field = printable(".".join(map(str, path)))
        where = document.where(path)
        line = None if where.line is None else where.line + first_line - 1
        context: dict[str, Any] = found.get("ctx", {})
        said = found["msg"][:1].lower() + found["msg"][1:]
        text = _MESSAGES.get(found["type"], "`{field}`: {text}")
        message = text.format(field=field or "document", expected=context.get("expected"), text=said)
        named = ".".join(part for part in path if isinstance(part, str))
        remedy = remedies.get(named) or _REMEDIES.get(found["type"], "correct the value")
        yield Problem(Location(where.file, line, field or None), message, remedy)


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
