"""The section of docs/policy-releases.md on several engines, followed in one shell by an operator with two releases."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from engine.binaries import find_binary
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from tests.conftest import ROOT
from tests.first_hour.pages import Reader, steps_in
from tests.first_hour.test_try_it import MARK, script
from tests.policy_bundle.releases import Keys, released
from tests.processes import own_port

_SECTION = re.compile(r"^## One release for several engines\n(.*?)^## ", re.MULTILINE | re.DOTALL)


@pytest.mark.full
def test_the_section_does_what_it_shows(tmp_path: Path, cache: Path) -> None:
    keys = Keys.make(tmp_path / "keys")
    shutil.copy(keys.public, tmp_path / "public.pem")
    for number in (1, 2):
        values = (f"licenses.licenses.MIT.decision={('admit', 'refuse')[number - 1]}",)
        sources = PolicySources(ROOT / "rego", ROOT / "policy", ROOT / "bundles" / "default", values)
        bundle = build(sources, POINTS, find_binary(), cache)
        released(bundle, tmp_path / "releases" / f"release-{number}", keys, number)
    section = _SECTION.search((ROOT / "docs/policy-releases.md").read_text(encoding="utf-8"))
    assert section is not None
    with own_port() as one, own_port() as two:
        found = steps_in(section[1].replace("8642", str(one)).replace("8643", str(two)))
        done = Reader(tmp_path, cache, tmp_path).run(f"export ENGINE_PORT={one}\n{script(found)}")
    printed = done.stdout.split(f"{MARK}\n")
    assert len(printed) == len(found) + 1 == 8, done.stderr
    wrong = [
        (step.command, output)
        for step, output in zip(found, printed, strict=False)
        if not (step.command.endswith("&") or step.matches(output))
    ]
    assert wrong == [], done.stderr
