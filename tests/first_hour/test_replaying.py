"""docs/replaying.md, followed as written: a license is refused, and the record shows what that would change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.first_hour.pages import Reader, blocks, steps

PAGE = "docs/replaying.md"


@pytest.mark.full
def test_the_page_runs_as_written(tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache, tmp_path)
    (values,) = blocks(PAGE, "yaml")
    for step in steps(PAGE):
        assert reader.follow(step).returncode == (6 if "replay" in step.command else 0)
        if "init" in step.command:
            (tmp_path / "my-policy" / "values" / "licenses.yaml").write_text(values, encoding="utf-8")
    assert (tmp_path / "replay.html").read_text(encoding="utf-8").endswith("</html>\n")
