"""docs/serving.md, "Ship the record", followed as written: shipped to a folder, again, and verified there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.first_hour.pages import Reader, steps_in


def test_the_section_runs_as_written(tmp_path: Path, cache: Path) -> None:
    pytest.importorskip("fsspec", reason="the extra `ray` is not installed")
    page = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
    section = re.search(r"^## Ship the record\n(.*)", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    reader = Reader(tmp_path, cache, tmp_path)
    for step in steps_in(section[1].replace("docs/", f"{ROOT}/docs/")):
        done = reader.follow(step)
        assert done.returncode == 0, done.stderr
    assert [path.parent.name for path in (tmp_path / "archive").rglob("*.decisions.jsonl")] == ["open"]
