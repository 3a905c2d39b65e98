"""docs/skills.md and docs/subagents.md: their commands print what they show, and their program runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.first_hour.pages import Reader, blocks, steps

SKILLS, SUBAGENTS = "docs/skills.md", "docs/subagents.md"
CHILD = "import json, sys\nprint(json.loads(sys.stdin.readline())['text'], flush=True)\nsys.stdin.read()\n"


@pytest.mark.full
def test_the_page_reads_skill_files(tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache)
    assert [reader.follow(step).returncode for step in steps(SKILLS)] == [0, 1]


@pytest.mark.full
def test_the_program_starts_a_subagent(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(CHILD, encoding="utf-8")
    (tmp_path / "reviewer.md").write_text("Review the change.", encoding="utf-8")
    (program,) = blocks(SUBAGENTS, "python")
    program = program.replace('"python3"', "sys.executable").replace('"/srv/agent"', '"."')
    program = program.replace("Settings()", 'Settings(state=Path("state"))')
    (tmp_path / "program.py").write_text(f"import sys\n{program}", encoding="utf-8")
    paths = f"{ROOT}:{ROOT / 'adapters'}"
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": paths, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "('Review the change.',)\n", done.stderr
