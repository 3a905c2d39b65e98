"""docs/code.md, followed as written: the run of an action, and a program that an agent wrote with its files."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT
from tests.facilities import needs
from tests.first_hour.pages import Reader, steps_in

PAGE = "docs/code.md"
pytestmark = needs("bubblewrap")


def section(start: str, end: str) -> str:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    return text.partition(start)[2].partition(end)[0]


def test_an_action_is_run_and_its_output_validated(tmp_path: Path, cache: Path) -> None:
    (step,) = steps_in(section("# Run generated code", "```sh"))
    done = Reader(tmp_path, cache).follow(step)
    assert done.returncode == 0, done


def test_an_agents_program_reads_files_and_leaves_others(tmp_path: Path, cache: Path) -> None:
    """Programs print on standard output what the page shows, and how it went on standard error."""
    reader, told = Reader(tmp_path, cache, tmp_path), ""
    for step in steps_in(section("## Let your agent run code", "\n### ")):
        writes = "<<" in step.command
        done = reader.run(f"{step.command}\n{step.output}" if writes else step.command)
        assert done.returncode == 0, (step.command, done)
        assert writes or step.matches(done.stdout), (step.command, done)
        told += done.stderr
    assert "allowed by this profile" in told
    assert "wrote out/totals.txt" in told
