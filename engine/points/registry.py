"""All decision points by name: the one list to extend."""

from __future__ import annotations

from engine.points import Point, license, source

POINTS: dict[str, Point] = {point.name: point for point in (source.POINT, license.POINT)}
