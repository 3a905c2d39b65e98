"""docs/environments.md, followed as written: built, refused, queried, changed and restored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.first_hour.pages import Reader, run_program, steps

PAGE = "docs/environments.md"


@pytest.mark.full
def test_the_page_runs_as_written(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "fixtures" / "material", tmp_path / "fixtures" / "material")
    reader = Reader(tmp_path, cache, tmp_path)
    for step in steps(PAGE):
        reader.follow(step)
    monkeypatch.chdir(tmp_path)
    names = run_program(PAGE)
    assert [one["name"].rpartition("_")[2] for one in names["prompt"]] == ["add", "delete", "get", "search", "update"]
    assert [names[one].status for one in ("found", "gone")] == ["ok", "ok"]
    assert [line["event"] for line in names["changes"]] == ["undo_point", "changed"]
    assert names["undone"].result.facts["rows"] == 5
    assert names["problems"] == []
