"""The engine as a pipeline holds it: after a fork, with a permit, when it cannot be opened."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from admission_adapters.runner.errors import FilesystemUnsupportedError
from engine import Engine, Settings, assembly
from engine.documents.validation import FieldsError
from engine.engine import AsyncEngine
from engine.errors import EngineError, GatherError, Location, PolicyError, Problem, StateError, WorkError
from engine.model import Outcome, Permit, Result, is_reserved
from engine.points.registry import POINTS
from engine.points.source import SourceLimits
from engine.policy_bundle.lookups import Lookups
from engine.record.layout import LOCK
from engine.record.storage import Storage
from engine.record.verify import verify
from engine.settings import CONTROL
from engine.work import Job
from tests.conftest import BUNDLES, case
from tests.expect import there
from tests.processes import children, gone, in_child, opa_of
from tests.threads import no_threads

GOOD = BUNDLES / "offline_fixture"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_engine_denies_and_leaves_the_parent_intact(settings: Settings) -> None:
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


@pytest.mark.parametrize("kind", [Engine, AsyncEngine])
@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy])
def test_a_worker_gets_no_copy_of_an_engine(
    kind: type[Engine | AsyncEngine], copied: Callable[[Any], object], settings: Settings
) -> None:
    """Libraries pickle the functions of a pipeline with all they refer to, also to name results that they keep."""
    with pytest.raises(TypeError, match="open one in each process"):
        copied(partial(print, kind(settings)))
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - our own


def test_an_error_of_a_worker_reaches_its_pool() -> None:
    """A pool of multiprocessing waits for ever for an error that cannot be unpickled."""
    problem = Problem(Location("licenses.yaml", 3), "it is not a license", "remove the row")
    for error in (
        GatherError("it cannot be read", remedy="check it", where=Location("a", 1), code="engine.other"),
        FieldsError("a field is missing", remedy="add it", fields=(("license", "is missing"),)),
        PolicyError((problem, problem)),
        FilesystemUnsupportedError("agent-1"),
    ):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        assert type(again) is type(error)
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_worker_keeps_no_record_locked(settings: Settings) -> None:
    """The lock belongs to the open file, which a worker that was forked has open too."""
    request = {"path": str(GOOD), "digest": None}
    ended, end = os.pipe()
    with Engine(settings) as engine:
        assert engine.decide("source", request).decision.outcome is Outcome.ALLOW
        worker = os.fork()
        if worker == 0:
            os.close(end)
            os.read(ended, 1)
            os._exit(0)
    try:
        with Engine(settings) as engine:
            assert engine.decide("source", request).decision.outcome is Outcome.ALLOW
    finally:
        os.close(end)
        os.close(ended)
        os.waitpid(worker, 0)


def test_without_threads_an_engine_allows_nothing_and_keeps_nothing(settings: Settings) -> None:
    request = {"path": str(GOOD), "digest": None}
    with no_threads(), Engine(settings) as engine:
        got = engine.decide("source", request)
        assert (got.decision.outcome, got.exit) == (Outcome.DENY, 4)
        assert got.decision.findings[0].code == "engine.record_unavailable"
        assert "no thread" in got.decision.findings[0].requirement
        assert Storage(settings.state).locked(LOCK) is False
    with Engine(settings) as engine:
        assert engine.decide("source", request).decision.outcome is Outcome.ALLOW


def test_an_opa_without_a_supervisor_is_not_served(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "opa-supervisor":
            raise RuntimeError
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Engine(settings) as engine:
        got = engine.decide("source", {"path": str(GOOD), "digest": None})
        assert (got.decision.outcome, got.decision.findings[0].code) == (Outcome.DENY, "policy_unavailable")


@pytest.mark.own_opa
def test_a_control_socket_that_cannot_be_removed_leaves_no_other_part_open(settings: Settings) -> None:
    before = children(os.getpid())
    with Engine(settings) as engine:
        there(engine.services).store()  # opens the control socket
        pid = opa_of(os.getpid(), before)
        (settings.state / CONTROL.parent).rename(settings.state / "aside")
        (settings.state / CONTROL.parent).touch()
    assert gone(pid)
    assert Storage(settings.state).locked(LOCK) is False


@pytest.mark.own_opa
@pytest.mark.full(after=1)
@pytest.mark.parametrize("part", ["executors", "_supervisor", "_log"])
def test_a_part_that_does_not_close_keeps_no_other_open(
    part: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children(os.getpid())
    engine = Engine(settings).__enter__()
    store, pid, close = engine.store(), opa_of(os.getpid(), before), getattr(engine, part).close

    def broken() -> None:
        close()
        raise OSError("not closed")

    monkeypatch.setattr(getattr(engine, part), "close", broken)
    with pytest.raises(OSError, match="not closed"):
        engine.__exit__()
    assert gone(pid)
    assert Storage(settings.state).locked(LOCK) is False
    with pytest.raises(StateError):
        store.tokens()


@pytest.mark.own_opa
def test_an_engine_of_an_event_loop_is_closed_where_hanging_up_fails(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise OSError("not hung up")

    async def opened() -> None:
        async with AsyncEngine(settings) as engine:
            monkeypatch.setattr(engine._supervisor, "leave", broken)
            pids.append(opa_of(os.getpid(), before))

    before = children(os.getpid())
    pids: list[int] = []
    with pytest.raises(OSError, match="not hung up"):
        asyncio.run(opened())
    assert gone(pids[0])
    assert Storage(settings.state).locked(LOCK) is False


@pytest.mark.own_opa
@pytest.mark.full(after=1)
@pytest.mark.parametrize("steps", [1, 50])
def test_an_engine_of_an_event_loop_whose_opening_is_cancelled_leaves_nothing_open(
    steps: int, settings: Settings
) -> None:
    async def cancelled() -> None:
        opening = asyncio.ensure_future(AsyncEngine(settings).__aenter__())
        for _ in range(steps):
            await asyncio.sleep(0)
        opening.cancel()
        await opening

    before = children(os.getpid())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert children(os.getpid()) <= before
    assert Storage(settings.state).locked(LOCK) is False


def test_a_forged_permit_is_refused(settings: Settings) -> None:
    held: list[tuple[Permit, Job]] = []

    def executor(permit: Permit, job: Job) -> Result:
        held.append((permit, job))
        return Result("held", {})

    with Engine(settings) as engine:
        engine.decide("source", {"path": str(GOOD), "digest": None}, executor)
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


def test_a_result_that_cannot_be_recorded_is_a_fault(settings: Settings) -> None:
    with Engine(settings) as engine:
        answer = engine.decide(
            "source", {"path": str(GOOD), "digest": None}, lambda *_: Result("done", {"x": object()})
        )
    assert (there(answer.fault).code.startswith("engine."), answer.exit) == (True, 4)
    assert verify(settings.state).ok


def test_a_fault_of_ours_is_a_recorded_deny_without_a_traceback(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise ZeroDivisionError("not shown to callers")

    point = POINTS["source"]
    monkeypatch.setattr("engine.points.source.POINT", replace(point, gather=broken))
    with Engine(settings) as engine:
        answer = engine.decide("source", {"path": str(GOOD), "digest": None})
    (finding,) = answer.decision.findings
    assert (answer.decision.outcome, finding.code, answer.exit) == (Outcome.DENY, "engine.internal", 4)
    assert "not told" not in finding.requirement
    monkeypatch.setattr("engine.points.source.POINT", replace(point, events=broken))
    with Engine(settings) as engine:
        answer = engine.decide("source", {"path": str(GOOD), "digest": None})
    assert (answer.decision.outcome, answer.decision.limits) == (Outcome.DENY, None)
    assert verify(settings.state).records == 1


@pytest.mark.own_opa
def test_an_engine_that_cannot_be_opened_leaves_no_opa(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(settings)
    pids: list[Any] = []

    def broken(*_: Any, **__: Any) -> None:
        pids.append(engine.opa.pid)  # type: ignore[union-attr]
        raise KeyboardInterrupt

    monkeypatch.setattr(assembly, "StandingLog", broken)
    with pytest.raises(KeyboardInterrupt):
        engine.__enter__()
    assert gone(pids[0])


def test_an_engine_is_opened_once_and_may_be_closed_twice(settings: Settings) -> None:
    with Engine(settings, points=frozenset({"license"})) as engine:
        with pytest.raises(EngineError, match="was opened before"):
            engine.__enter__()
        before = engine.check("license", {})
    engine.__exit__()
    with pytest.raises(EngineError, match="was opened before"):
        engine.__enter__()
    assert [one.code for one in before.decision.findings] != ["engine.record_unavailable"]
    closed = engine.check("license", {})
    assert [one.code for one in closed.decision.findings] == ["engine.record_unavailable"]


def test_settings_show_no_password() -> None:
    assert "secret" not in repr(Settings(database="postgresql://engine:secret@localhost/engine"))


def test_an_engine_for_some_points_denies_at_all_others(settings: Settings) -> None:
    elsewhere = {"host": "127.0.0.1", "port": 1, "published": False}
    with Engine(settings, points=frozenset({"source"})) as engine:
        here = engine.check("source", {"path": str(GOOD), "digest": None})
        denied = engine.check("runner_bind", elsewhere)
    assert here.decision.outcome is Outcome.ALLOW
    assert [denied.decision.outcome, denied.exit] == [Outcome.DENY, 4]
    assert is_reserved(denied.decision.findings[0].code)
    with Engine(settings) as engine:  # the control: with all points it is allowed
        assert engine.check("runner_bind", elsewhere).decision.outcome is Outcome.ALLOW


def test_values_of_another_version_are_a_fault_of_the_policy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(_: Any) -> Lookups:
        raise KeyError("carried")

    monkeypatch.setattr(Lookups, "of", lacking)
    with Engine(settings) as engine:
        got = engine.check("source", {"path": str(GOOD), "digest": None})
    assert [got.decision.outcome, got.decision.findings[0].code] == [Outcome.DENY, "engine.policy_invalid"]


def test_lookups_while_gathering_follow_the_active_policy(settings: Settings, policy: Path) -> None:
    asked: Any = {**case("license", "accepted").case.request, "license": "the house license"}
    licenses = policy / "licenses.yaml"
    with Engine(replace(settings, policy=policy)) as engine:
        assert engine.check("license", asked).decision.outcome == "deny"
        licenses.write_text(
            licenses.read_text().replace("\naliases:\n", "\naliases:\n  the house license: CC-BY-4.0\n")
        )
        engine.activate()
        assert engine.check("license", asked).decision.outcome == "allow"
