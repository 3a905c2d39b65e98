"""A policy named on the command line takes precedence over releases named by environment variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_POLICIES = {"policy", "rego", "recipe", "values", "release"}


def command_line_first(given: dict[str, Any]) -> dict[str, Any]:
    """The options of a command; releases of variables are left out if the command line names a policy."""
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
