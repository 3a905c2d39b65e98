"""docs/rules.md and docs/values.md, followed from an empty folder to a rule and values of one's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.first_hour.pages import Reader, Step

_FILE = r"(Write|Add to) `(my-policy/\S+)`:\n\n```\w+\n(.*?)^```$"
_PART = re.compile(_FILE + r"|^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REFUSED = 5


def follow(reader: Reader, part: re.Match[str]) -> list[tuple[Step, str, str, int]]:
    """Write the file that the page tells to write, or run its commands; returns what they printed."""
    what, path, text, commands = part.groups()
    if what is not None:
        file = reader.folder / path
        file.write_text((file.read_text(encoding="utf-8") if what == "Add to" else "") + text, encoding="utf-8")
        return []
    done = []
    for command in re.split(r"^\$ ", commands, flags=re.MULTILINE)[1:]:
        line, _, output = command.partition("\n")
        ran = reader.run(line)
        done.append((Step(line, output or None), ran.stdout, ran.stderr, ran.returncode))
    return done


@pytest.mark.full
@pytest.mark.parametrize(
    ("page", "codes"),
    [("docs/rules.md", [0, 0, 0, _REFUSED, 0, 0, 1]), ("docs/values.md", [0, 0, 0, 1, 0, 0, 0, 0])],
)
def test_each_page_does_what_it_shows(page: str, codes: list[int], tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache, tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    ran = [one for part in _PART.finditer(text) for one in follow(reader, part)]
    for step, printed, errors, _ in ran:
        assert step.matches(printed), (step.command, printed, errors)
    assert [code for *_, code in ran] == codes
