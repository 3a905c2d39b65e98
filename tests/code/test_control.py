"""Around a run: approvals, repeated keys, cancelling, how many at once, and what fails of the engine itself."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from engine import CodeRun, Context
from engine.code.running import RunWatcher, owner_of
from engine.errors import RecordError
from engine.model import Caller, Via
from engine.opa.generation import Generation
from tests.administration.test_stops import stopped
from tests.api.serving import until
from tests.code.conftest import CODE, GOLDEN, PIPELINE, Bench, golden, printing
from tests.conftest import lowered
from tests.expect import there
from tests.facilities import needs

pytestmark = needs("bubblewrap")

SLOW = "while True: pass"
ASKING = (
    f"levels.levels.code_scan={{import_not_allowed: {lowered('warn')}}}",
    f"levels.levels.code_execution={{static_policy_violation: {lowered('confirm')}}}",
)


def grant(bench: Bench, done: CodeRun) -> dict[str, str]:
    """Approve what a run asks for, as another person; what to bring along."""
    wanted = done.document["approval"]
    bench.engine.store().resolve(wanted["id"], "granted", "boss", None, int(time.time()))
    return {wanted["for"]: wanted["id"]}


def ran(bench: Bench, done: CodeRun) -> list[str]:
    """How the programs of a run ended."""
    found = [line for line in bench.recorded(done) if line["kind"] == "result"]
    return [line["status"] for line in found if not line["status"].startswith("run_")]


# Approvals


# covers: C64.1-3
def test_nothing_runs_before_a_person_has_approved_and_the_retry_is_decided_anew(opening: Callable[..., Any]) -> None:
    code = "import abc\n" + CODE
    with opening(values=ASKING) as bench:
        done = bench.run(golden(code, task="t"))
        assert (done.stop_reason, done.document["phase"], done.exit) == ("approval_required", "policy_check", 3)
        assert done.document["approval"]["for"] == "code_execution"
        assert ran(bench, done) == []
        step = done.document["trace"][1]
        assert (step["decision"], step["reason"], step["ok"]) == ("deny", "approval_required", False)
        given = grant(bench, done)
        other = bench.run(golden(code + "\n#", approvals=given))
        assert (other.ok, other.exit) == (False, 1)
        assert ran(bench, other) == []
        good = bench.run(golden(code, task="t", approvals=given))
        assert good.ok, good.document  # what a person was asked about was no failed try
        assert ran(bench, good) == ["ok"]
        again = bench.run(golden(code, approvals=given))
        assert not again.ok
        assert ran(bench, again) == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "phase", "steps"),
    [
        ("code_action", "plan", 0),
        ("code_scan", "policy_check", 2),
        ("code_execution", "policy_check", 2),
        ("code_output", "execute", 3),
    ],
    ids=str,
)
def test_a_confirm_at_any_point_ends_the_run(opening: Callable[..., Any], name: str, phase: str, steps: int) -> None:
    spent = f"budgets.budgets.{name}.all={{limit: 1, window_seconds: 0}}"
    with opening(values=(spent, f"levels.levels.{name}={{budget_exhausted: {lowered('confirm')}}}")) as bench:
        assert bench.run(golden()).ok
        done = bench.run(golden())
        assert (done.stop_reason, done.document["phase"]) == ("approval_required", phase)
        assert done.document["approval"]["for"] == name
        assert len(done.document["trace"]) == steps
        assert "answer" not in done.document
        assert bench.run(golden(approvals=grant(bench, done))).ok


# covers: C63
def test_a_run_counts_as_an_attempt_even_if_its_output_needs_approval(opening: Callable[..., Any]) -> None:
    spent = "budgets.budgets.code_output.all={limit: 1, window_seconds: 0}"
    with opening(values=(spent, f"levels.levels.code_output={{budget_exhausted: {lowered('confirm')}}}")) as bench:
        assert bench.run(golden()).ok
        done = bench.run(golden(task="t"))
        assert (done.stop_reason, ran(bench, done)) == ("approval_required", ["ok"])
        assert bench.run(golden(task="t", approvals=grant(bench, done))).ok  # the same code, which has not failed
        assert bench.run(golden(task="t")).stop_reason == "approval_required"
        last = bench.run(golden(task="t"))
        assert (last.stop_reason, ran(bench, last)) == ("policy_block:attempts_exhausted", [])


# Keys


def test_a_repeated_key_gives_the_whole_result_and_runs_nothing(bench: Bench) -> None:
    context = replace(PIPELINE, idempotency_key=str(uuid.uuid4()))
    first = bench.run(golden(), context)
    before = len(bench.recorded(first))
    again = bench.run(golden(), context)
    assert again.replayed
    assert again.document == first.document
    assert again.exit == first.exit == 0
    assert len(bench.recorded(first)) == before
    other = bench.run(golden("print()"), context)
    assert other.stop_reason == "invalid_request:idempotency_conflict"
    assert ran(bench, other) == []
    another = replace(context, caller=context.caller.model_copy(update={"principal": "another"}))
    assert not bench.run(golden(), another).replayed


# covers: C68.1
def test_under_a_stop_no_result_is_replayed(bench: Bench) -> None:
    context = replace(PIPELINE, idempotency_key=str(uuid.uuid4()))
    first = bench.run(golden(), context)
    with stopped(bench.engine):
        again = bench.run(golden(), context)
        assert (again.stop_reason, again.exit) == ("engine_fault:engine.idempotency_stale", 4)
        assert "answer" not in again.document
    assert bench.run(golden(), context).document == first.document


def test_a_failed_run_is_replayed_too(bench: Bench) -> None:
    context = replace(PIPELINE, idempotency_key=str(uuid.uuid4()))
    first, again = (bench.run(golden(printing(sample_size=0)), context) for _ in range(2))
    assert (again.document, again.exit, again.replayed) == (first.document, 1, True)


def test_a_result_that_was_lost_is_a_fault_and_never_a_second_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an engine that died leaves it: the key is taken, and nobody knows whether anything ran."""
    assert bench.run(golden(), replace(PIPELINE, idempotency_key=str(uuid.uuid4()))).ok  # the control
    lost = replace(PIPELINE, idempotency_key=str(uuid.uuid4()))
    real = there(bench.engine.services)

    class Dies(BaseException):
        pass

    def died(*_: Any) -> Any:
        raise Dies

    with monkeypatch.context() as patch:
        dying = replace(real, gather_context=replace(real.gather_context, sandbox_facts=died))
        patch.setattr(bench.engine, "services", dying)
        with pytest.raises(Dies):
            bench.run(golden(), lost)
    again = bench.run(golden(), lost)
    assert again.stop_reason == "invalid_request:idempotency_pending"
    assert ran(bench, again) == []


# Cancelling, and how many at once


def test_a_cancelled_run_is_killed_at_once_and_recorded(bench: Bench) -> None:
    cancel = threading.Event()

    def told(phase: str) -> None:
        if phase == "execute":
            threading.Timer(0.3, cancel.set).start()

    done = bench.run(golden(SLOW, policy_hints={"exec_timeout_seconds": 20}), watch=RunWatcher(cancel, told))
    (took,) = [line["facts"]["exec_ms"] for line in bench.recorded(done) if line.get("status") == "cancelled"]
    assert took < 20_000
    assert (done.stop_reason, done.document["phase"]) == ("cancelled", "execute")
    assert ran(bench, done) == ["cancelled"]
    assert bench.recorded(done)[-1]["facts"]["root_cause"] == "cancelled"


# covers: C68.1
def test_a_stop_kills_the_sandbox_of_a_run(opening: Callable[..., Any]) -> None:
    ana = Context(caller=Caller(via=Via.CONTROL, principal="user:ana"))
    began = threading.Event()

    def told(phase: str) -> None:
        if phase == "execute":
            began.set()

    with opening("stopped") as bench, ThreadPoolExecutor(1) as pool:
        asked = golden(SLOW, policy_hints={"exec_timeout_seconds": 20})
        running = pool.submit(bench.run, asked, watch=RunWatcher(on_phase=told))
        assert began.wait(60)
        stop = {"act": "stop", "id": "a" * 32, "stop": {"scope": "all"}}
        assert bench.engine.administer(stop, ana).done is not None
        done = running.result(60)
        assert done.stop_reason == "policy_block:stopped"
        assert ran(bench, done) == ["cancelled"]
        assert bench.run(golden()).stop_reason == "policy_block:stopped"


def test_a_run_that_was_cancelled_before_it_began_starts_nothing(bench: Bench) -> None:
    cancel = threading.Event()
    cancel.set()
    done = bench.run(golden(), watch=RunWatcher(cancel))
    assert done.stop_reason == "cancelled"
    assert done.document["trace"][2].get("exec_ms") is None
    assert ran(bench, done) == ["cancelled"]


def test_concurrent_runs_are_limited_and_visible_only_to_their_caller(
    opening: Callable[..., Any],
) -> None:
    own = str(uuid.uuid4())
    with opening(code_runs=1, code_waiting=0) as bench:
        cancel, begun, kept = threading.Event(), threading.Event(), list[CodeRun]()

        def told(phase: str) -> None:
            if phase == "execute":
                begun.set()

        slow = golden(SLOW, policy_hints={"exec_timeout_seconds": 20}, run_id=own)
        thread = threading.Thread(target=lambda: kept.append(bench.run(slow, watch=RunWatcher(cancel, told))))
        thread.start()
        assert begun.wait(60)
        running = bench.engine.executors.machine().running
        ticket = there(running.find(own, PIPELINE.caller))
        assert ticket.phase == "execute"
        assert running.find(own, PIPELINE.caller.model_copy(update={"principal": "other"})) is None
        over = bench.run(golden())
        assert (over.stop_reason, over.exit) == ("engine_fault:engine.overloaded", 4)
        same = bench.run(golden(run_id=own))
        assert same.stop_reason == "invalid_request:run_pending"
        ticket.watch.cancel.set()
        thread.join(60)
        assert kept[0].stop_reason == "cancelled"
        assert kept[0].document["run_id"] == own
        assert running.find(own, PIPELINE.caller) is None
        assert bench.run(golden()).ok


def test_a_queued_run_learns_its_place_and_can_be_cancelled(opening: Callable[..., Any]) -> None:
    with opening(code_runs=1, code_waiting=2) as bench, ThreadPoolExecutor(3) as pool:
        first, waiting, gone = RunWatcher(), RunWatcher(), RunWatcher()
        places: list[int] = []
        running = bench.engine.executors.machine().running
        slow = golden(SLOW, policy_hints={"exec_timeout_seconds": 20}, run_id=str(uuid.uuid4()))
        begun = pool.submit(bench.run, slow, watch=first)
        until(lambda: [one.phase for one in running.of(PIPELINE.caller)] == ["execute"])
        later = pool.submit(bench.run, golden(), watch=gone)
        until(lambda: [one.place for one in running.of(PIPELINE.caller)] == [1, 0])
        last = pool.submit(bench.run, golden(), watch=replace(waiting, on_place=places.append))
        until(lambda: places == [2])
        assert bench.run(golden()).stop_reason == "engine_fault:engine.overloaded"
        gone.cancel.set()
        assert later.result(60).stop_reason == "cancelled"  # while the first one goes on
        assert not begun.done()
        assert ran(bench, later.result()) == ["cancelled"]
        until(lambda: places == [2, 1])
        first.cancel.set()
        assert last.result(60).ok
        assert begun.result(60).stop_reason == "cancelled"


def test_a_queued_run_is_refused_when_the_engine_stops(opening: Callable[..., Any]) -> None:
    with opening(code_runs=1) as bench, ThreadPoolExecutor(2) as pool:
        first = RunWatcher()
        begun = pool.submit(bench.run, golden(SLOW, policy_hints={"exec_timeout_seconds": 20}), watch=first)
        running = bench.engine.executors.machine().running
        until(lambda: [one.phase for one in running.of(PIPELINE.caller)] == ["execute"])
        last = pool.submit(bench.run, golden())
        until(lambda: len(running.of(PIPELINE.caller)) == 2)
        bench.engine.executors.stop_waiting()
        assert last.result(60).stop_reason == "engine_fault:engine.stopping"
        assert [line["outcome"] for line in bench.recorded(last.result())] == ["deny"]
        first.cancel.set()
        assert begun.result(60).stop_reason == "cancelled"


# What is kept


def test_a_run_that_has_ended_is_listed_with_its_result_until_it_expires(opening: Callable[..., Any]) -> None:
    with opening() as bench:
        good, bad = bench.run(golden()), bench.run(golden("import os"))
        store, owner, now = bench.engine.store(), owner_of(PIPELINE.caller), bench.engine.now()
        second, first = store.code_runs(owner, None, now, 10)
        assert [first.id, second.id] == [good.document["run_id"], bad.document["run_id"]]
        assert (first.status, second.status, second.stop_reason) == ("ok", "stopped", bad.stop_reason)
        assert json.loads(there(first.result)) == good.document
        assert second.result is None  # nothing ran, so no permit says for how long
        assert [one.id for one in store.code_runs(owner, second.number, now, 10)] == [first.id]
        assert store.code_runs("process:other", None, now, 10) == ()
        assert store.code_run(first.id, "process:other", now) is None
        assert store.code_run(first.id, owner, first.expires_at) is None
        times = {"started_at": now - 3, "ended_at": now - 2, "expires_at": now - 1}
        store.add_code_run(replace(second, number=None, id=(expired := str(uuid.uuid4())), **times))
        store.add_code_run(replace(second, number=None))
        assert expired not in [one.id for one in store.code_runs(None, None, 0, 10)]  # removed


# Faults of the engine


@pytest.mark.own_opa
def test_a_dead_policy_server_is_a_fault_and_nothing_runs(opening: Callable[..., Any]) -> None:
    with opening() as bench:
        assert isinstance(bench.engine.opa, Generation)
        os.kill(there(bench.engine.opa.pid), signal.SIGKILL)
        done = bench.run(golden())
        assert (done.stop_reason, done.document["phase"]) == ("engine_fault:policy_unavailable", "plan")
        assert (done.exit, ran(bench, done)) == (4, [])


@dataclass(frozen=True, slots=True)
class FullAfter:
    """The record until a number of lines is written; then the disk is full."""

    real: Any
    left: list[int]

    def append(self, body: Any, events: tuple[Any, ...] = ()) -> object:
        if not self.left[0]:
            raise RecordError("the disk is full", remedy="make room")
        self.left[0] -= 1
        return self.real.append(body, events)

    def append_many(self, bodies: Sequence[Any]) -> Sequence[Any]:
        return [self.append(*one) for one in bodies]

    async def append_async(self, body: Any, events: tuple[Any, ...] = ()) -> object:
        return self.append(body, events)


@pytest.mark.parametrize(
    ("lines", "phase", "started"),
    [
        (0, "plan", 0),
        (1, "policy_check", 0),
        (2, "policy_check", 0),
        (3, "execute", 1),
        (4, "execute", 1),
        (5, "execute", 1),
    ],
)
def test_without_its_record_no_run_has_a_result(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, lines: int, phase: str, started: int
) -> None:
    real = there(bench.engine.services)
    begun: list[str] = []
    code = f"{CODE}\n# recorded up to line {lines}"
    monkeypatch.setattr(bench.engine, "services", replace(real, log=cast("Any", FullAfter(real.log, [lines]))))
    done = bench.run(golden(code), watch=RunWatcher(on_phase=begun.append))
    checks = bench.engine.store().artifact_checks(hashlib.sha256(code.encode()).hexdigest(), 9)
    assert not [check for check in checks if check.name == "validation" and check.passed]
    assert done.stop_reason == "engine_fault:engine.record_unavailable"
    assert (done.document["phase"], done.exit) == (phase, 4)
    assert "answer" not in done.document
    assert begun.count("execute") == started


@dataclass(frozen=True, slots=True)
class Broken:
    """A sandbox that fails itself, as one whose set-up the kernel refuses does."""

    real: Any
    name: str = "bubblewrap"

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> RunResult:
        assert program.folder
        assert bounds.wall_seconds > 0
        assert cancel is not None
        return RunResult(Status.SANDBOX_ERROR, wall_seconds=0.1, stderr=b"bwrap: no", stderr_bytes=9)

    def available(self) -> str | None:
        return None

    def machine(self) -> str:
        return str(self.real.machine())


@pytest.fixture
def broken(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = bench.engine.executors.machine()
    monkeypatch.setattr(
        bench.engine.executors, "_machine", replace(real, backend=lambda name: Broken(real.backend(name)))
    )


@pytest.mark.usefixtures("broken")
def test_a_sandbox_that_fails_is_never_a_verdict_on_the_program(bench: Bench) -> None:
    done = bench.run(golden(task=f"t-{uuid.uuid4()}"))
    assert (done.stop_reason, done.exit) == ("engine_fault:engine.sandbox_error", 4)
    assert done.document["trace"][2]["ok"] is False
    assert ran(bench, done) == ["sandbox_error"]
    assert b"bwrap: no" in bench.kept(done.document["stored"]["log"])
    before = bench.engine.store().artifact_checks("0" * 64, 9)
    assert before == ()
    assert GOLDEN["action"]["code"] == CODE


@pytest.mark.usefixtures("broken")
def test_a_replayed_fault_is_a_fault(bench: Bench) -> None:
    context = replace(PIPELINE, idempotency_key=str(uuid.uuid4()))
    first, again = (bench.run(golden(), context) for _ in range(2))
    assert (again.replayed, again.document, again.exit) == (True, first.document, first.exit)
    assert there(again.fault).code == there(first.fault).code == "engine.sandbox_error"


def test_an_artifact_store_that_cannot_be_written_gives_no_result(opening: Callable[..., Any]) -> None:
    with opening() as bench:
        (bench.state / "artifacts").write_text("in the way")
        done = bench.run(golden())
        assert (done.stop_reason, done.exit) == ("engine_fault:engine.artifacts_unavailable", 4)
        assert "answer" not in done.document
