"""docs/coding-agents.md, followed as written: a policy folder from the recipe, and what it decides about two calls."""

from __future__ import annotations

from pathlib import Path

from tests.first_hour.pages import Reader, steps

PAGE = "docs/coding-agents.md"


def test_the_page_starts_a_policy_for_a_coding_agent(tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache, tmp_path)
    followed = steps(PAGE)
    assert len(followed) == 6
    for step in followed:
        done = reader.follow(step)
        assert done.returncode == (3 if "push.json --tool" in step.command else 0), (step.command, done)
