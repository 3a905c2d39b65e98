"""docs/remote-model.md: its commands print what it shows, and its values are admitted."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from engine.model import ModelError
from tests.conftest import ROOT
from tests.first_hour.pages import Reader, blocks, run_program, steps

PAGE = "docs/remote-model.md"


@pytest.mark.full
def test_the_page_runs_as_written(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(tmp_path, cache, tmp_path)
    (row,) = blocks(PAGE, "yaml")
    for step in steps(PAGE):
        reader.follow(step)
        if "init" in step.command:
            (tmp_path / "my-policy" / "values" / "llm.yaml").write_text(row, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run_program(PAGE)
    assert capsys.readouterr().out == "no answer: model_variable_missing\n"


def test_the_page_explains_every_error() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert [word for word in get_args(ModelError) if f"`{word}`" not in text] == []
