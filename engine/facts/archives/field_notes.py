"""What is wrong with a field of `bundle.yaml` and what it should be, for people; never its content."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from engine.documents.files import Path_
from engine.documents.validation import model_at
from engine.facts.text.nearest import did_you_mean, nearest
from engine.model import Model

_WRONG = {
    "missing": "it is missing",
    "unknown_value": "it is not a known word",
    "too_long": "it is too long",
    "too_short": "it is empty",
    "out_of_range": "the number is out of range",
    "bad_format": "its form is wrong",
    "too_many_errors": "further wrong fields are not listed",
}
TYPES = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}


def note(root: type[Model], kind: str, value: Any, path: Path_, line: int | None) -> str:
    """What is wrong with the field at a path of a document whose model is `root`.

    `value` is what stands there; `line` is named where the reader is not at it.
    """
    if kind == "unknown_field":
        return _unknown(model_at(root, path[:-1]), str(path[-1]), line)
    wrong = _WRONG.get(kind) or f"it is {TYPES.get(type(value), 'empty')}"
    item = model_at(root, path) if isinstance(path[-1] if path else 0, int) else None
    expected = f"a mapping of {', '.join(item.model_fields)}" if item else _expected(root, _names(path))
    return f"{wrong}; it should be {expected}" if expected else wrong


def _unknown(model: type[BaseModel] | None, name: str, line: int | None) -> str:
    known = tuple(model.model_fields) if model else ()
    alike = nearest(name.replace("_", " "), [one.replace("_", " ") for one in known], {})
    hint = did_you_mean(tuple(one.replace(" ", "_") for one in alike)) if alike else f"known are {', '.join(known)}"
    return f"unknown field{f' in line {line}' if line else ''}; {hint}"


def _names(path: Path_) -> tuple[str, ...]:
    return tuple(part for part in path if isinstance(part, str))


@lru_cache(maxsize=1024)
def _expected(root: type[Model], names: tuple[str, ...]) -> str:
    parent = model_at(root, names[:-1])
    return (parent.model_fields[names[-1]].description if parent else None) or ""
