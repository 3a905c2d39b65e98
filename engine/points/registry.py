"""All decision points by name: the one list to extend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from engine.documents.files import printable
from engine.errors import GatherError
from engine.points import Point

_NAMES = (
    "source",
    "license",
    "environment",
    "environment_act",
    "episode",
    "transcript",
    "export",
    "memory",
    "release",
    "adapter",
    "adapter_envelope",
    "artifact",
    "code_action",
    "code_execution",
    "code_output",
    "code_scan",
    "llm",
    "mcp",
    "media",
    "model_ref",
    "network",
    "network_response",
    "provisioning",
    "runner_bind",
    "runner_capability",
    "runner_request",
    "runner_uri",
    "sandbox",
    "skill_file",
    "subagent",
    "tool_call",
    "tool_contract",
    "tool_result",
    "tool_visibility",
    "administration",
    "record",
    "record_read",
)
"""Each is a module here, which has the point as `POINT`."""


class _Points(Mapping[str, Point]):
    """Imports a point on first use: importing all of them takes three times as long as a command needs."""

    def __getitem__(self, name: str) -> Point:
        if name not in _NAMES:
            raise KeyError(name)
        point: Point = import_module(f"engine.points.{name}").POINT
        return point

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


POINTS: Mapping[str, Point] = _Points()


def find(name: str) -> Point:
    """The decision point of this name. Raises GatherError."""
    if name not in _NAMES:
        raise GatherError(
            f"there is no decision point `{printable(str(name), 40)}`", remedy=f"use one of: {', '.join(POINTS)}"
        )
    return POINTS[name]
