"""The active tools of a process: for each name a callable, and what is said about it.

What is said is kept as JSON text, so nothing that a caller stored or read is shared with the registry
(D49). A registry says nothing on what may be called: each call is decided on by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.errors import WorkError

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True)
class _Entry:
    implementation: Callable[..., Any]
    definition: str


class ToolRegistry:
    """Callables by name; threads may share it. Raises WorkError only."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def add(self, name: str, implementation: Callable[..., Any], definition: dict[str, Any]) -> None:
        """Put a tool in. `definition` is plain JSON in any shape; a name is taken once and for all.

        Raises WorkError `engine.tool_not_registered`.
        """
        if not _is_name(name):
            raise _refused("a tool's name has characters that no tool may have", "use letters, digits, `_`, `.`, `-`")
        if not callable(implementation):
            raise _refused(f"tool `{name}` has no callable", "give the function that does its work")
        entry = _Entry(implementation, _text(name, definition))
        if self._entries.setdefault(name, entry) is not entry:
            raise _refused(f"tool `{name}` is registered already", "give each tool a name of its own")

    def get(self, name: str) -> Callable[..., Any]:
        """The callable of a tool. Raises WorkError `engine.tool_missing`."""
        return self._entry(name).implementation

    def definition(self, name: str) -> dict[str, Any]:
        """What is said about a tool; a copy of its own at each reading. Raises WorkError `engine.tool_missing`."""
        found: dict[str, Any] = json.loads(self._entry(name).definition)
        return found

    def names(self) -> tuple[str, ...]:
        """The names of all tools, sorted."""
        return tuple(sorted(self._entries))

    def _entry(self, name: str) -> _Entry:
        if (entry := self._entries.get(name)) is None:
            raise WorkError(
                "no tool of this name is registered",
                remedy="use one of the names that the registry lists",
                code="engine.tool_missing",
            )
        return entry


def _is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _text(name: str, definition: dict[str, Any]) -> str:
    try:
        text = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = ""
    if not text.startswith("{"):
        raise _refused(f"the definition of tool `{name}` is no JSON object", "give plain JSON")
    return text


def _refused(message: str, remedy: str) -> WorkError:
    return WorkError(message, remedy=remedy, code="engine.tool_not_registered")
