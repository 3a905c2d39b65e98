"""docs/adapters.md: its commands print what it shows, and its manifest is that of the example."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.first_hour.pages import Reader, blocks, steps

PAGE = "docs/adapters.md"


@pytest.mark.full
def test_the_page_serves_an_adapter(tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache)
    assert [reader.follow(step).returncode for step in steps(PAGE)] == [0, 1, 1, 0]


def test_the_manifest_is_the_one_of_the_example() -> None:
    (shown,) = blocks(PAGE, "yaml")
    assert shown == (ROOT / "docs" / "examples" / "adapter" / "manifest.yaml").read_text(encoding="utf-8")
