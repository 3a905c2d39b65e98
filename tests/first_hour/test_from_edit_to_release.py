"""docs/from-edit-to-release.md, followed in one shell: an edit is released, activated and rolled back."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.first_hour.pages import Reader, Step, blocks, steps_in
from tests.first_hour.test_try_it import MARK, script
from tests.processes import own_port

PAGE = "docs/from-edit-to-release.md"
_EDIT = "my-policy/values/licenses.yaml"


@pytest.mark.full
@pytest.mark.skipif(shutil.which("openssl") is None, reason="NOT TRIED, openssl is not installed")
def test_the_page_does_what_it_shows(tmp_path: Path, cache: Path) -> None:
    (values,), (request,) = blocks(PAGE, "yaml"), blocks(PAGE, "json")
    (tmp_path / "license.json").write_text(request, encoding="utf-8")
    with own_port() as port:
        text = (ROOT / PAGE).read_text(encoding="utf-8")
        before, after = map(steps_in, text.replace("8642", str(port)).split(f"```yaml\n{values}```\n"))
        found = [*before, Step(f"printf %s {shlex.quote(values)} > {_EDIT}", None), *after]
        done = Reader(tmp_path, cache, tmp_path).run(f"export ENGINE_PORT={port}\n{script(found)}")
    printed = done.stdout.split(f"{MARK}\n")
    assert len(printed) == len(found) + 1, done.stderr
    wrong = [(step.command, output) for step, output in zip(found, printed, strict=False) if not step.matches(output)]
    assert wrong == [], done.stderr
    assert "this is a rollback: release 1 is older than 2" in done.stderr
