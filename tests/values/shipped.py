"""The values of this tree, changed at some of their paths, and what their models say of them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.documents.files import load
from engine.settings import ReadLimits
from engine.values import DOCUMENTS

POLICY = Path(__file__).parents[2] / "policy"
SHIPPED: dict[str, Any] = {
    name: load((POLICY / f"{name}.yaml").read_bytes(), f"{name}.yaml", ReadLimits()).value for name in DOCUMENTS
}
DROP = object()
"""In the place of a value: leave it out."""

Change = tuple[str, Any]
"""A path such as `profiles/standard/0`, whose last part `+` is a new item of a list, and the value there."""


def changed(name: str, *changes: Change) -> Any:
    """A document with other values at these paths."""
    values = deepcopy(SHIPPED[name])
    for path, value in changes:
        *parents, last = path.split("/")
        target = values
        for part in parents:
            target = target[int(part) if isinstance(target, list) else part]
        if value is DROP:
            del target[last]
        elif last == "+":
            target.append(value)
        else:
            target[int(last) if isinstance(target, list) else last] = value
    return values


def errors_of(name: str, values: Any) -> list[tuple[str, str]]:
    """Path, with dots, and message of every error of these values."""
    with pytest.raises(ValidationError) as caught:
        DOCUMENTS[name].model_validate(values)
    return [(".".join(map(str, error["loc"])), error["msg"]) for error in caught.value.errors()]


def errors(name: str, *changes: Change) -> list[tuple[str, str]]:
    """The errors of a document with these changes."""
    return errors_of(name, changed(name, *changes))
