"""docs/gate.md, followed as written: an agent of a framework gets a gate, and its tools get entries."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.first_hour.pages import Reader, blocks, steps

PAGE = "docs/gate.md"


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("pydantic_ai") is None, reason="NOT TRIED, pydantic-ai is not installed")
def test_the_page_puts_a_gate_before_an_agent(tmp_path: Path, cache: Path) -> None:
    for name, text in zip(("tools.py", "agent.py", "any_agent.py"), blocks(PAGE, "python"), strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (entries,) = blocks(PAGE, "yaml")
    reader = Reader(tmp_path, cache, tmp_path)
    for step in steps(PAGE):
        python = f"PYTHONPATH={ROOT}:{ROOT}/adapters {sys.executable}"
        done = reader.run(step.command.replace("python ", f"{python} "))
        assert done.returncode == 0, (step.command, done)
        assert step.matches(done.stdout), (step.command, done)
        if step.command.startswith("engine tools init"):
            file = tmp_path / "my-policy" / "values" / "tools.yaml"
            assert all(f"  {name}:" in file.read_text(encoding="utf-8") for name in ("handbook_search", "note_send"))
            file.write_text(entries, encoding="utf-8")
