"""All decision points by name: the one list to extend."""

from __future__ import annotations

from engine.points import Point, source
from engine.points import license as license_point

POINTS: dict[str, Point] = {point.name: point for point in (source.POINT, license_point.POINT)}
