"""The section "Try it" of pages, run as written in one shell: a platform engineer and an agent developer."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.first_hour.pages import Reader, Step, blocks, steps_in
from tests.processes import own_port

MARK = "@@ end of step"
_SECTION = re.compile(r"^## Try it\n(.*?)^## ", re.MULTILINE | re.DOTALL)


def script(found: list[Step]) -> str:
    """The steps in one shell: one that goes on in the background is waited for until it prints what the page shows."""
    lines = []
    for step in found:
        if step.command.endswith(" &"):
            shown = (step.output or "").strip()
            lines += [
                f"{step.command.removesuffix('&')} > background 2>&1 &",
                f"until grep '{shown}' background; do kill -0 $! || break; sleep 0.1; done",
            ]
        else:
            lines.append(step.command)
            if (step.output or "").startswith("ID"):
                lines.append("ID=$(engine approvals list | head -c 32)")
        lines.append(f"echo '{MARK}'")
    return "\n".join([*lines, "jobs -p | xargs -r kill", "wait"])


@pytest.mark.full
@pytest.mark.parametrize("page", ["docs/serving.md", "docs/tools.md", "docs/runner.md"])
def test_the_section_does_what_it_shows(page: str, tmp_path: Path, cache: Path) -> None:
    section = _SECTION.search((ROOT / page).read_text(encoding="utf-8"))
    assert section is not None
    with own_port() as port:
        text = section[1].replace("8642", str(port)).replace("docs/", f"{ROOT}/docs/")
        text = text.replace("grant ID --", 'grant "$ID" --').replace("--approval ID", '--approval "$ID"')
        found = steps_in(text)
        export = f"export ENGINE_PORT={port}\n" if f"127.0.0.1:{port}" in text else ""
        done = Reader(tmp_path, cache, tmp_path).run(export + script(found))
    printed = done.stdout.split(f"{MARK}\n")
    for step, output in zip(found, printed, strict=False):
        shown = re.sub("^ID", "…", step.output or "") or None
        assert Step(step.command, shown).matches(output), (step.command, output, done.stderr)
    assert len(printed) == len(found) + 1, done.stderr


@pytest.mark.full
def test_the_program_of_the_page_on_tools_calls_a_tool_once_its_file_is_curated(tmp_path: Path, cache: Path) -> None:
    (program,) = (text for text in blocks("docs/tools.md", "python") if "def files_read" in text)
    (curated,) = (text for text in blocks("docs/tools.md", "yaml") if "DIGEST" in text)
    (tmp_path / "agent.py").write_text(program, encoding="utf-8")
    (tmp_path / "notes.md").write_text("Soup is hot.", encoding="utf-8")
    reader = Reader(tmp_path, cache, tmp_path)
    run = f"PYTHONPATH={ROOT}:{ROOT}/adapters {sys.executable} agent.py"
    assert reader.run("engine policy init my-policy").returncode == 0
    assert reader.run(run).stdout.splitlines()[0] == "deny ['not_curated']"
    digest = hashlib.sha256(program.encode()).hexdigest()
    (tmp_path / "my-policy" / "values" / "tools.yaml").write_text(curated.replace("DIGEST", digest), encoding="utf-8")
    done = reader.run(run)
    assert done.stdout == "allow []\nok None Soup is hot.\n", done.stderr
