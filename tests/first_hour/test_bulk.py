"""docs/bulk.md, followed as written: a corpus of three rows on a cluster of its own, and its record."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.ray.columns import read_columns
from tests.first_hour.pages import Reader, blocks, steps

PAGE = "docs/bulk.md"


@pytest.mark.full
def test_the_page_runs_as_written(tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache, tmp_path)
    (columns,) = blocks(PAGE, "yaml")
    (tmp_path / "columns.yaml").write_text(columns, encoding="utf-8")
    assert read_columns(tmp_path / "columns.yaml").content == "text"
    for step in steps(PAGE):
        done = reader.follow(step)
        assert done.returncode == (1 if "--ray" in step.command else 0), done.stderr
