"""The registry knows every point there is, and imports none before it is asked for."""

from __future__ import annotations

import subprocess
import sys

from engine.points.registry import POINTS
from tests.conftest import ROOT


def test_every_point_stands_under_its_own_name() -> None:
    assert [point.name for point in POINTS.values()] == list(POINTS)
    modules = [path for path in (ROOT / "engine/points").glob("*.py") if "\nPOINT = " in path.read_text("utf-8")]
    assert len(modules) == len(POINTS)


def test_only_the_requested_point_is_imported() -> None:
    code = "import sys; from engine.points.registry import find; find('license')"
    told = f"{code}; print(sorted(name for name in sys.modules if name.startswith('engine.points.')))"
    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "engine.points.license" in done.stdout
    assert "engine.points.tool_call" not in done.stdout
