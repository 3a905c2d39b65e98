"""README, run as written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.conftest import ROOT
from tests.first_hour.pages import Reader, Step, blocks, steps

SET_UP = "scripts/test"
"""The command that runs these tests."""

SERVED = ("scripts/run serve", "curl")

STEPS = [step for step in steps("README.md") if not step.command.startswith((SET_UP, *SERVED))]


@pytest.mark.full
def test_each_command_of_readme_does_what_readme_shows(tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache)
    for step in STEPS:
        done = reader.follow(step)
        assert "Traceback" not in done.stderr, (step.command, done.stderr)
        assert done.returncode in {0, 1, 3}, (step.command, done.stdout, done.stderr)


@pytest.mark.full
def test_readme_shows_what_a_serving_engine_answers(tmp_path: Path, cache: Path) -> None:
    shown = next(step for step in steps("README.md") if step.command.startswith("curl"))
    path = re.search(r"http://127\.0\.0\.1:8642(\S+)", shown.command)
    body = re.search(r"-d @(\S+)", shown.command)
    assert path is not None
    assert body is not None
    with serving(tmp_path, cache) as server:
        reply = server.ask("POST", path[1], json.loads((ROOT / body[1]).read_text(encoding="utf-8")))
    assert Step(shown.command, shown.output).matches(reply.body.decode()), reply.body


@pytest.mark.full
def test_the_python_of_readme_admits(tmp_path: Path, cache: Path) -> None:
    (source,) = blocks("README.md", "python")
    program = tmp_path / "readme.py"
    program.write_text(
        source.replace('"state"', repr(str(tmp_path / "state"))).replace(
            '"artifacts"', repr(str(tmp_path / "artifacts"))
        ),
        encoding="utf-8",
    )
    done = Reader(tmp_path, cache).run(f"PYTHONPATH=. .venv/bin/python {program}")
    assert done.stdout == "allow []\n", done.stderr


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1_000
