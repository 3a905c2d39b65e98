"""docs/episodes.md, followed as written: run, shown again from the record, and run from Python."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.documents.files import load
from engine.episodes.definition import definition_of
from engine.settings import ReadLimits
from tests.conftest import ROOT
from tests.first_hour.pages import Reader, blocks, run_program, steps

PAGE = "docs/episodes.md"


def test_the_page_runs_as_written(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "fixtures" / "episodes", tmp_path / "fixtures" / "episodes")
    reader = Reader(tmp_path, cache, tmp_path)
    for step in steps(PAGE):
        reader.follow(step)
    monkeypatch.chdir(tmp_path)
    assert run_program(PAGE)["done"].end.reason == "completed"


def test_the_file_of_the_page_is_an_episode_also_with_its_model() -> None:
    whole, model = (load(text.encode(), "page", ReadLimits()).value for text in blocks(PAGE, "yaml"))
    assert definition_of(whole, "page", ReadLimits()).actors
    assert definition_of({**whole, **model}, "page", ReadLimits()).actors[0].model
