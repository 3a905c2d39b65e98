"""What the documentation shows runs as shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.api.serving import serving
from tests.command import decisions
from tests.conftest import ROOT

EXAMPLES = ROOT / "docs" / "examples"


def test_deciding_in_process(tmp_path: Path, cache: Path) -> None:
    environment = {
        "PYTHONPATH": str(ROOT),
        "ENGINE_STATE_DIR": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(cache.parent),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, EXAMPLES / "in_process.py"], env=environment, capture_output=True, text=True, check=True
    )
    words = [line.split()[:2] for line in done.stdout.splitlines()]
    assert words == [
        ["deny:", "license_incompatible:"],
        ["CC0-1.0:", "allow"],
        ["CC-BY-4.0:", "allow"],
        ["Nobody-1.0:", "deny"],
    ]
    assert [one["principal"] for one in decisions(tmp_path / "state")] == ["curation"] * 4


def test_the_request_of_the_readme(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as api:
        answer = api.decide("license", (EXAMPLES / "license.json").read_bytes())
    assert (answer.status, answer.json["outcome"]) == (200, "allow")
    assert answer.json["limits"] == {"purpose": "train", "export": {"allowed": False}}
    assert json.loads(answer.body)["approval"] is None
