"""All decision points by name: the one list to extend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from engine.errors import GatherError
from engine.files import shown
from engine.points import Point

_MODULES = {
    "source": "source",
    "license": "license",
    "artifact": "artifact",
    "code_action": "code_action",
    "code_execution": "code_execution",
    "code_output": "code_output",
    "code_scan": "code_scan",
    "mcp": "mcp",
    "media": "media",
    "runner_bind": "runner_bind",
    "runner_capability": "runner_capability",
    "runner_request": "runner_request",
    "runner_uri": "runner_uri",
    "sandbox": "sandbox",
    "skill_file": "skill_file",
    "subagent": "subagent",
    "tool_call": "tool_call",
    "tool_contract": "tool_contract",
    "tool_result": "tool_result",
    "tool_visibility": "tool_visibility",
    "administration": "administration",
    "record": "observation",
}
"""The module of each point, which has it as `POINT`."""


class _Points(Mapping[str, Point]):
    """Imports a point when it is asked for: all of them take three times as long as what one command needs."""

    def __getitem__(self, name: str) -> Point:
        point: Point = import_module(f"engine.points.{_MODULES[name]}").POINT
        return point

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


POINTS: Mapping[str, Point] = _Points()


def find(name: str) -> Point:
    """The decision point of this name. Raises GatherError."""
    if name not in _MODULES:
        raise GatherError(f"there is no decision point `{shown(name, 40)}`", remedy=f"use one of: {', '.join(POINTS)}")
    return POINTS[name]
