"""The engine as a pipeline holds it: after a fork, with a permit, when it cannot be opened."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from engine import Engine, Settings
from engine.errors import WorkError
from engine.model import Outcome, Permit, Result
from engine.points.registry import POINTS
from engine.points.source import SourceLimits
from engine.record.verify import verify
from engine.work import Job
from tests.conftest import BUNDLES
from tests.processes import gone, in_child

GOOD = BUNDLES / "offline_fixture"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_engine_allows_nothing_and_leaves_the_parents_whole(settings: Settings) -> None:
    """A child that shared the connection could read the answer to another request."""
    request = {"path": str(GOOD), "digest": None}
    with Engine(settings) as engine:
        assert engine.decide("source", request).decision.outcome is Outcome.ALLOW

        def child() -> bool:
            got = engine.decide("source", request).decision
            engine.__exit__()
            return got.outcome is Outcome.DENY and got.findings[0].code.startswith("engine.")

        assert in_child(child)
        assert engine.decide("source", request).decision.outcome is Outcome.ALLOW
    assert verify(settings.state).ok


def test_a_permit_is_for_exactly_what_it_was_sealed_for(settings: Settings) -> None:
    held: list[tuple[Permit, Job]] = []

    def hand(permit: Permit, job: Job) -> Result:
        held.append((permit, job))
        return Result("held", {})

    with Engine(settings) as engine:
        engine.decide("source", {"path": str(GOOD), "digest": None}, hand)
    ((permit, job),) = held
    limits = permit.demand("source", job.input_digest, SourceLimits)
    other = "sha256:" + "0" * 64
    wider = limits.model_copy(update={"purpose": "tool"})
    for forged in (
        replace(permit, input_digest=other),
        replace(permit, limits=wider),
        replace(permit, point="license"),
    ):
        with pytest.raises(WorkError):
            forged.demand(forged.point, forged.input_digest, SourceLimits)


def test_work_that_fails_is_a_fault_and_is_recorded(settings: Settings) -> None:
    def hand(_permit: Permit, _job: Job) -> Result:
        raise ZeroDivisionError("not told to anybody")

    with Engine(settings) as engine:
        answer = engine.decide("source", {"path": str(GOOD), "digest": None}, hand)
    assert answer.fault is not None
    assert (answer.fault.code, answer.exit) == ("engine.work_failed", 4)
    assert answer.result == Result("engine.work_failed", {})
    lines = (settings.state / "records" / "decisions.000001.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["decision", "result"]
    assert "not told" not in lines[1]
    assert verify(settings.state).ok


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_work_that_is_interrupted_is_recorded_first(stop: type[BaseException], settings: Settings) -> None:
    def hand(_permit: Permit, _job: Job) -> Result:
        raise stop

    with Engine(settings) as engine, pytest.raises(stop):
        engine.decide("source", {"path": str(GOOD), "digest": None}, hand)
    lines = (settings.state / "records" / "decisions.000001.jsonl").read_text(encoding="utf-8").splitlines()
    assert [(one["kind"], one.get("status")) for one in map(json.loads, lines)] == [
        ("decision", None),
        ("result", "interrupted"),
    ]
    assert verify(settings.state).ok


def test_a_result_that_cannot_be_recorded_is_a_fault(settings: Settings) -> None:
    with Engine(settings) as engine:
        answer = engine.decide(
            "source", {"path": str(GOOD), "digest": None}, lambda *_: Result("done", {"x": object()})
        )
    assert answer.fault is not None
    assert (answer.fault.code.startswith("engine."), answer.exit) == (True, 4)
    assert verify(settings.state).ok


def test_a_fault_of_ours_is_a_recorded_deny_without_a_traceback(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise ZeroDivisionError("not told to anybody")

    point = POINTS["source"]
    monkeypatch.setattr("engine.points.source.POINT", replace(point, gather=broken))
    with Engine(settings) as engine:
        answer = engine.decide("source", {"path": str(GOOD), "digest": None})
    (finding,) = answer.decision.findings
    assert (answer.decision.outcome, finding.code, answer.exit) == (Outcome.DENY, "engine.internal", 4)
    assert "not told" not in finding.message
    monkeypatch.setattr("engine.points.source.POINT", replace(point, events=broken))
    with Engine(settings) as engine:
        answer = engine.decide("source", {"path": str(GOOD), "digest": None})
    assert (answer.decision.outcome, answer.decision.limits) == (Outcome.DENY, None)
    assert verify(settings.state).records == 1


def test_an_engine_that_cannot_be_opened_leaves_no_opa(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(settings)
    pids: list[Any] = []

    def broken() -> None:
        pids.append(engine.opa.pid)  # type: ignore[union-attr]
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_open_log", broken)
    with pytest.raises(KeyboardInterrupt):
        engine.__enter__()
    assert gone(pids[0])
