"""`engine record shadow`: the lines of a candidate beside a server, reported as a replay of the same decisions is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import Exit
from engine.flow import Context
from engine.model import Caller, Via
from engine.policy_bundle.sources import PolicySources
from engine.record.log import RecordLog
from engine.record.model import CandidateVerdict, DecisionRecord, ShadowRecord
from engine.record.reader import Filter, newest
from engine.record.storage import Storage
from engine.replay.shadow import Shadow
from engine.replay.shadowed import shadowed
from engine.settings import Settings
from tests.api.serving import ALLOWED, until
from tests.command import Command
from tests.conftest import ROOT
from tests.expect import there

ADMITTED = "  {}: {{category: {}, decision: admit"
ANA = Context(caller=Caller(via=Via.PROCESS, principal="ana"))


@contextmanager
def beside(folder: Path, settings: Settings, count: int) -> Iterator[Engine]:
    """An engine with a candidate beside it, which then has decided so many requests."""
    shadow = Shadow(PolicySources(settings.rego, folder, settings.recipe), settings, lambda *_: None)
    with Engine(settings, points=frozenset({"license"}), recorded=shadow.offer) as engine:
        shadow.start(there(engine.services).log)
        until(lambda: shadow.up)
        yield engine
        until(lambda: shadow.decided.total() == count)
        shadow.close()


def refusing(folder: Path, license_: str, category: str) -> Path:
    """A candidate that refuses a license."""
    if not folder.exists():
        shutil.copytree(ROOT / "policy", folder)
    file, row = folder / "licenses.yaml", ADMITTED.format(license_, category)
    text = file.read_text(encoding="utf-8")
    assert row in text
    file.write_text(text.replace(row, row.replace("admit", "refuse")), encoding="utf-8")
    return folder


@pytest.fixture
def recorded(tmp_path: Path, cache: Path) -> tuple[Settings, Path]:
    """Three decisions beside a candidate, and one beside an earlier one."""
    settings, strict = Settings(state=tmp_path / "state", cache=cache), tmp_path / "strict"
    refusing(strict, "CC0-1.0", "public_domain")
    with beside(strict, settings, 1) as engine:
        engine.decide("license", ALLOWED)
    refusing(strict, "MIT", "permissive")
    with beside(strict, settings, 3) as engine:
        engine.decide("license", ALLOWED, context=ANA)
        engine.decide("license", {**ALLOWED, "license": "Apache-2.0"})
        engine.decide("license", {**ALLOWED, "license": "CC0-1.0"})
    return settings, strict


def in_any_order(document: dict[str, Any]) -> dict[str, Any]:
    """A report; it lists the last decisions first, a replay the first ones."""
    changes = [
        {name: sorted(value, key=str) if isinstance(value, list) else value for name, value in one.items()}
        for one in document["changes"]
    ]
    return {**document, "changes": changes}


def test_the_shadow_report_agrees_with_a_replay_of_the_same_decisions(
    recorded: tuple[Settings, Path], command: Command
) -> None:
    settings, strict = recorded
    own = ("--state", settings.state, "--policy", strict)
    first = [one.body.time for one in newest(settings.state, Filter(kind="decision"))][2]
    told = command("record", "shadow", *own, "--format", "json")
    assert told.code == Exit.REPLAY_CHANGED, told.stderr
    replayed = command("record", "replay", *own, "--since", first, "--format", "json")
    assert in_any_order(told.json) == in_any_order(replayed.json)
    assert told.json["counts"]["newly_denied"] == 2
    assert told.json["changes"][0]["values"]
    assert "not in the report: 1 decision of the candidate with rules sha256:" in told.stderr
    text = command("record", "shadow", *own).stdout
    for words in ("3 recorded decisions, 20", "  policy  ", "license license_incompatible: deny now (2 decisions)"):
        assert words in text, text
    page = command("record", "shadow", *own, "--format", "html").stdout
    assert "decided beside the server</h1>" in page
    assert "<script" not in page
    ana = command("record", "shadow", *own, "--principal", "ana", "--format", "json").json
    assert (ana["record"]["decisions"], ana["counts"]["newly_denied"]) == (1, 1)
    command("record", "shadow", *own, "--point", "source").refused("no recorded shadow decision matches")


def test_a_replaced_candidate_is_reported_without_its_titles(recorded: tuple[Settings, Path], command: Command) -> None:
    settings, strict = recorded
    refusing(strict, "Apache-2.0", "permissive")
    told = command("record", "shadow", "--state", settings.state, "--policy", strict)
    assert told.code == Exit.REPLAY_CHANGED
    assert "nothing was recorded of policy default as it is now" in told.stderr
    assert "license license_incompatible: deny now (2 decisions)" in told.stdout
    assert "required:" not in told.stdout
    assert "has no requirement with this code" not in told.stdout


@pytest.mark.full
def test_without_shadow_lines_and_for_a_broken_record_it_says_so(
    recorded: tuple[Settings, Path], command: Command, tmp_path: Path
) -> None:
    settings, strict = recorded
    (tmp_path / "empty").mkdir()
    command("record", "shadow", "--state", tmp_path / "empty").refused("no recorded shadow decision matches")
    record = next(settings.state.rglob("decisions*.jsonl"))
    record.write_bytes(record.read_bytes().replace(b'"outcome":"allow"', b'"outcome":"deny"', 1))
    broken = command("record", "shadow", "--state", settings.state, "--policy", strict)
    assert (broken.code, broken.stdout) == (Exit.FAILED_CLOSED, "")
    assert command("record", "shadow", "--state", settings.state, "--policy", strict, "--broken").code == 6


def one_decision(tmp_path: Path, cache: Path) -> tuple[Settings, DecisionRecord]:
    """A record of one allowed decision."""
    settings = Settings(state=tmp_path / "state", cache=cache)
    with Engine(settings, points=frozenset({"license"})) as engine:
        engine.decide("license", ALLOWED)
    (entry,) = newest(settings.state, Filter(kind="decision"))
    assert isinstance(entry.body, DecisionRecord)
    return settings, entry.body


def plant(settings: Settings, decided: DecisionRecord, fields: dict[str, Any], **verdict: Any) -> None:
    """Write a line of a candidate that decided alike, but for these fields of the line and of its verdict."""
    alike = {"outcome": decided.outcome, "findings": (), "limits": decided.limits, "policy": there(decided.policy)}
    candidate = CandidateVerdict(**{"point": decided.point, **alike, **verdict})
    stated = {"time": decided.time, "decision_id": decided.decision_id, "change": None, **fields}
    line = {**stated, "candidate": json.loads(candidate.model_dump_json())}
    with RecordLog.open(Storage(settings.state), lock_seconds=5) as log:
        log.append(ShadowRecord.model_validate(line, strict=False))


def test_lines_without_their_decision_are_counted_and_few_are_held(tmp_path: Path, cache: Path) -> None:
    """Lines are planted in front of decisions that the record does not have; the newest ones can be asked for."""
    settings, decided = one_decision(tmp_path, cache)
    for id_ in (decided.decision_id, "a" * 32, "b" * 32):
        plant(settings, decided, {"decision_id": id_})
    found = there(shadowed(settings.state, Filter(), None))
    assert (found.found.decisions, found.found.compared, found.known) == (3, 1, False)
    assert found.found.undecided == {("license", "the record no longer has the decision"): 2}
    last = shadowed(settings.state, Filter(), None, most=1)
    assert last is None  # the last line has no decision
