"""Which policy is meant where a variable names releases and the command line names another policy: the latter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_POLICIES = {"policy", "rego", "recipe", "values", "release"}


def outranking(given: dict[str, Any]) -> dict[str, Any]:
    """Options of a command without releases of variables, where the command line names another policy."""
    named = {name for name, value in given.items() if value and not _of_variable(name, value)}
    if named & _POLICIES:
        given = {
            name: None if name in {"release", "releases"} and name not in named else value
            for name, value in given.items()
        }
        if not (given.get("release") or given.get("releases") or "release_key" in named):
            given["release_key"] = None
    return given


def _of_variable(name: str, value: Any) -> bool:
    variable = os.environ.get(f"ENGINE_{name.upper()}")
    return isinstance(value, Path) and bool(variable) and Path(str(variable)) == value
