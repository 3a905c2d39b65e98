"""`engine serve --shadow`: a candidate decides live requests too, and neither changes nor delays an answer."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import Location
from engine.model import Outcome
from engine.policy_bundle.sources import PolicySources
from engine.record.model import ShadowRecord
from engine.record.reader import Filter, entries, select
from engine.record.retention import last_policy
from engine.replay.shadow import Shadow, ShadowLimits
from engine.settings import Settings
from tests.api.serving import ALLOWED, serving, until
from tests.command import Command
from tests.conftest import ROOT
from tests.expect import there
from tests.processes import children, opa_of


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    """A candidate that refuses MIT."""
    folder = Path(shutil.copytree(ROOT / "policy", tmp_path / "strict"))
    licenses = folder / "licenses.yaml"
    lines = licenses.read_text(encoding="utf-8").splitlines(keepends=True)
    (at,) = (index for index, line in enumerate(lines) if line.strip().startswith("MIT:"))
    block = "".join(lines[at : at + 3])
    text = "".join(lines).replace(block, block.replace("admit", "refuse", 1), 1)
    licenses.write_text(text, encoding="utf-8")
    return folder


def beside(folder: Path, settings: Settings, events: list[str], **limits: Any) -> Shadow:
    sources = PolicySources(settings.rego, folder, settings.recipe)
    return Shadow(sources, settings, lambda event, _: events.append(event), ShadowLimits(**limits))


def shadows(state: Path) -> list[ShadowRecord]:
    found = [entry.body for entry in entries(state, Filter(kind="shadow")) if not isinstance(entry, Location)]
    assert all(isinstance(one, ShadowRecord) for one in found)
    return found  # type: ignore[return-value]


def test_the_lines_of_a_shadow_candidate_do_not_count_as_decisions(strict: Path, settings: Settings) -> None:
    events: list[str] = []
    shadow = beside(strict, settings, events)
    with Engine(settings, points=frozenset({"license"}), recorded=shadow.offer) as engine:
        shadow.start(there(engine.services).log)
        until(lambda: shadow.up)
        decided = engine.decide("license", ALLOWED).decision
        until(lambda: shadow.decided.total() == 1)
        shadow.close()
        served = decided.policy
    assert (decided.outcome, events[0]) == (Outcome.ALLOW, "shadow_started")
    (line,) = shadows(settings.state)
    assert (line.decision_id, line.change, line.candidate.outcome) == (decided.decision_id, "newly_denied", "deny")
    assert line.candidate.policy != served
    assert [one.code for one in line.candidate.findings] == ["license_incompatible"]
    assert last_policy(settings.state) == served
    assert select(settings.state, Filter(point="license", outcome="deny"), 9).entries == ()
    assert select(settings.state, Filter(code="license_incompatible"), 9).entries == ()
    assert (shadow.dropped, shadow.decided) == (Counter(), Counter(newly_denied=1))


def test_excess_shadow_decisions_are_dropped_and_counted(strict: Path, settings: Settings) -> None:
    shadow = beside(strict, settings, [], waiting=1, values=200, characters=1_000)
    with Engine(settings, points=frozenset({"license"}), recorded=shadow.offer) as engine:
        assert engine.decide("license", ALLOWED).decision.outcome is Outcome.ALLOW
        assert shadow.dropped == {"not_running": 1}
        shadow.up = True  # and nothing takes from its queue
        for _ in range(3):
            assert engine.decide("license", ALLOWED).decision.outcome is Outcome.ALLOW
        assert shadow.dropped == {"not_running": 1, "queue_full": 2}
        assert engine.check("license", {"unknown": 1}).fault is not None  # no policy decided it
        assert shadow.dropped.total() == 3
        shadow.close()
    assert shadow.dropped == {"not_running": 1, "queue_full": 2, "stopped": 1}
    small = {"a": ["b" * 10] * 10}
    assert [shadow._small(one) for one in (small, {"a": "b" * 2_000}, {"a": [0] * 300}, {"a": {"b": small}})] == [
        *(True, False, False, True)
    ]
    assert shadows(settings.state) == []


def test_an_invalid_candidate_is_reported_without_affecting_decisions(strict: Path, settings: Settings) -> None:
    (strict / "licenses.yaml").write_text("licenses: nonsense\n", encoding="utf-8")
    events: list[str] = []
    shadow = beside(strict, settings, events)
    with Engine(settings, points=frozenset({"license"}), recorded=shadow.offer) as engine:
        shadow.start(there(engine.services).log)
        until(lambda: events == ["shadow_refused"])
        assert engine.decide("license", ALLOWED).decision.outcome is Outcome.ALLOW
        shadow.close()
    assert (shadow.up, shadow.dropped) == (False, Counter(not_running=1))


@pytest.mark.own_opa
@pytest.mark.full(after=1)
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_candidate_that_is_killed_or_hangs_delays_no_answer(
    sent: signal.Signals, strict: Path, settings: Settings
) -> None:
    quick = replace(settings, opa=replace(settings.opa, answer_seconds=1.0))
    shadow = beside(strict, quick, [], pause_seconds=0.05)
    with Engine(settings, points=frozenset({"license"}), recorded=shadow.offer) as engine:
        before = children(os.getpid())
        shadow.start(there(engine.services).log)
        until(lambda: shadow.up)
        os.kill(opa_of(os.getpid(), before), sent)
        assert engine.decide("license", ALLOWED).decision.outcome is Outcome.ALLOW
        until(lambda: shadow.decided.total() + shadow.dropped.total() == 1)

        def answered() -> bool:
            engine.decide("license", ALLOWED)
            return shadow.decided["newly_denied"] > 0

        until(answered)  # by another one that was started
        shadow.close()


@pytest.mark.full
def test_serve_reports_a_candidate_in_metrics_and_record(strict: Path, tmp_path: Path, cache: Path) -> None:
    command = Command.of(tmp_path, cache)
    with serving(tmp_path, cache, "--shadow", strict) as running:
        until(lambda: "engine_shadow_up 1.0" in running.ask("GET", "/metrics").body.decode())
        assert running.decide("license", ALLOWED).json["outcome"] == "allow"
        until(lambda: "engine_shadow_changed_total 1.0" in running.ask("GET", "/metrics").body.decode())
        assert running.stop() == 0
    state = ("--state", running.state)
    assert command("record", "verify", *state).code == 0
    shown = command("record", "show", *state, "--limit", "100").stdout
    assert ": deny, newly_denied\n" in shown
    exported = command("record", "export", *state, "--format", "csv").stdout
    assert "deny" not in exported
    replayed = command("record", "replay", *state, "--policy", strict, "--point", "license", "--format", "json").json
    assert replayed["record"]["decisions"] == 1
