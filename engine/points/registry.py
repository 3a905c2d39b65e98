"""All decision points by name: the one list to extend."""

from __future__ import annotations

from engine.errors import GatherError
from engine.files import shown
from engine.points import (
    Point,
    artifact,
    code_action,
    code_execution,
    code_output,
    code_scan,
    mcp,
    media,
    observation,
    runner_bind,
    runner_capability,
    runner_request,
    runner_uri,
    sandbox,
    skill_file,
    source,
    subagent,
    tool_call,
    tool_contract,
    tool_result,
    tool_visibility,
)
from engine.points import license as license_point

POINTS: dict[str, Point] = {
    point.name: point
    for point in (
        source.POINT,
        license_point.POINT,
        artifact.POINT,
        code_action.POINT,
        code_execution.POINT,
        code_output.POINT,
        code_scan.POINT,
        mcp.POINT,
        media.POINT,
        runner_bind.POINT,
        runner_capability.POINT,
        runner_request.POINT,
        runner_uri.POINT,
        sandbox.POINT,
        skill_file.POINT,
        subagent.POINT,
        tool_call.POINT,
        tool_contract.POINT,
        tool_result.POINT,
        tool_visibility.POINT,
        observation.POINT,
    )
}


def find(name: str) -> Point:
    """The decision point of this name. Raises GatherError."""
    if name not in POINTS:
        raise GatherError(f"there is no decision point `{shown(name, 40)}`", remedy=f"use one of: {', '.join(POINTS)}")
    return POINTS[name]
