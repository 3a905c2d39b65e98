"""The page of shadow decisions: what a candidate beside a server decided differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.model import Level, Outcome
from engine.record.model import RecordedFinding
from engine.settings import Settings
from tests.api.serving import ALLOWED
from tests.replay.test_shadow_report import beside, one_decision, plant, refusing
from tests.workbench.conftest import NASTY
from tests.workbench.pages import workbench
from tests.workbench.test_pages import SHOWN, harmless


@pytest.mark.full
def test_a_candidate_is_shown_with_its_differing_decisions(tmp_path: Path, cache: Path) -> None:
    settings, strict = Settings(state=tmp_path / "state", cache=cache), tmp_path / "strict"
    refusing(strict, "MIT", "permissive")
    with beside(strict, settings, 2) as engine:
        denied = engine.decide("license", ALLOWED).decision
        engine.decide("license", {**ALLOWED, "license": "Apache-2.0"})
    with workbench(tmp_path, cache, "--policy", strict) as own:
        page = own.visitor().get("/shadow").html
    for words in ("2 recorded decisions", "license 1 1", "newly denied", "license_incompatible, 1 decision", "Rule: "):
        assert words in page.text, page.text
    assert f"/decisions/{denied.decision_id}" in page.values("a", "href")
    with workbench(tmp_path, cache, name="other") as other:
        text = other.visitor().get("/shadow").html.text
    assert "The policy in the folders of this workbench is not this candidate" in text
    assert "license_incompatible, 1 decision" in text


@pytest.mark.threat("injection")
def test_hostile_text_in_shadow_lines_does_nothing(tmp_path: Path, cache: Path) -> None:
    settings, decided = one_decision(tmp_path, cache)
    nasty = RecordedFinding(code=NASTY, level=Level.DENY, subject=NASTY)
    plant(settings, decided, {"change": NASTY}, outcome=Outcome.DENY, findings=(nasty,), limits=None)
    with workbench(tmp_path, cache) as running:
        visitor = running.visitor()
        page = visitor.get("/shadow").html
        assert page.text.count(SHOWN) == 2
        harmless(page)


def test_before_any_candidate_the_page_says_so(tmp_path: Path, cache: Path) -> None:
    with workbench(tmp_path, cache) as running:
        assert "No candidate has been recorded yet." in running.visitor().get("/shadow").html.text
