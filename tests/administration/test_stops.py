"""Stops: from the next decision on nothing that they apply to is allowed, and what is running ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from admission_adapters.tools.effects import Effects
from admission_adapters.tools.process import in_process
from admission_adapters.tools.thread import in_thread
from engine.engine import Engine
from engine.episodes.actors import ActorReply, Turn
from engine.flow import Answer, Context
from engine.idempotency import NEW_KEY
from engine.model import Caller, Job, Permit, Result, StopSignal, Via
from engine.opa.generation import Generation
from engine.opa.supervisor import SupervisionLimits
from engine.record.verify import verify
from engine.running import _ANSWER_SECONDS, _LOOK_SECONDS, Running
from engine.settings import Settings
from engine.subagents import subagents
from tests.adapters import isolated_tools
from tests.adapters.test_subagents import ASK, child_of, program
from tests.api.serving import ALLOWED
from tests.command import lines
from tests.episodes.scripts import episode, proposal
from tests.expect import there
from tests.processes import alive, stop, until

ANA = Context(caller=Caller(via=Via.CONTROL, principal="user:ana"))
BOT = Context(caller=Caller(via=Via.PROCESS, principal="bot"))
OTHER = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"))
POINTS = frozenset({"license", "subagent", "episode", "transcript"})


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, points=POINTS) as running:
        yield running


@contextmanager
def stopped(engine: Engine, scope: str = "all", name: str = "") -> Iterator[dict[str, Any]]:
    """A stop for the block."""
    id_ = uuid4().hex
    done = engine.administer({"act": "stop", "id": id_, "stop": {"scope": scope, "name": name}}, ANA)
    assert done.done is not None, done.answer.decision.findings
    yield done.done
    lifted = engine.administer({"act": "lift_stop", "id": id_, "reason": "over"}, ANA)
    assert there(lifted.done)["lifted_at"] is not None, lifted.answer.decision.findings


def decide(engine: Engine, context: Context = OTHER) -> str:
    return engine.decide("license", ALLOWED, context=context).decision.outcome.value


@dataclass
class Work:
    """Approved work that goes on until it is stopped."""

    began: threading.Event = field(default_factory=threading.Event)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def __call__(self, permit: Permit, job: Job) -> Result:
        self.began.set()
        assert job.stop.wait(60)
        return Result("done", {"permit": permit.point})

    def start(self, engine: Engine, context: Context = OTHER) -> Future[Answer]:
        running = self.pool.submit(engine.decide, "license", ALLOWED, self, context)
        assert self.began.wait(60)
        return running


def counted(asked: list[tuple[float, str]], since: float, most: int) -> bool:
    """Whether so many requests have begun since then."""
    return sum(began > since for began, _ in list(asked)) >= most


# covers: C68.1
@pytest.mark.parametrize("rounds", [2, pytest.param(100, marks=pytest.mark.full)])
def test_under_load_nothing_is_allowed_after_a_stop_and_running_work_ends_within_a_second(
    rounds: int, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look that begins after the answer ends it, and the next look is over within a second."""
    assert _LOOK_SECONDS + _ANSWER_SECONDS < 1
    looks: list[tuple[float, bool]] = []
    end_stopped = Running._end_stopped

    def look(self: Running, watched: list[Any]) -> None:
        began = time.monotonic()
        end_stopped(self, watched)
        looks.append((began, all(one.signal.is_set() for one in watched if not one.over)))  # the stop itself is over

    monkeypatch.setattr(Running, "_end_stopped", look)
    for _ in range(rounds):
        asked: list[tuple[float, str]] = []
        enough = threading.Event()

        def load(asked: list[tuple[float, str]] = asked, enough: threading.Event = enough) -> None:
            while not enough.is_set():
                began = time.monotonic()
                asked.append((began, decide(engine)))

        running = Work().start(engine)
        with ThreadPoolExecutor(4) as pool, ExitStack() as stack:
            loaded = [pool.submit(load) for _ in range(4)]
            stack.callback(enough.set)
            until(partial(counted, asked, 0.0, 1))
            with stopped(engine):
                answered = time.monotonic()
                until(partial(counted, asked, answered, 20))
                until(running.done)
                assert {outcome for began, outcome in asked if began >= answered} == {"deny"}
                assert all(ended for began, ended in looks if began >= answered)
                assert there(running.result().result).facts["stopped"] is True
            enough.set()
            for one in loaded:
                one.result()
        assert decide(engine) == "allow"


# covers: C68.3
def test_a_stop_of_one_principal_ends_its_work_and_no_other(engine: Engine) -> None:
    own, other = Work(), Work()
    ended, goes_on = own.start(engine, BOT), other.start(engine)
    with stopped(engine, "principal", "bot"):
        assert there(ended.result(60).result).facts["stopped"] is True
        assert (decide(engine, BOT), decide(engine)) == ("deny", "allow")
        assert not goes_on.done()
    assert decide(engine, BOT) == "allow"
    with stopped(engine):
        goes_on.result(60)


# covers: C68.1
def test_a_stop_holds_in_every_process_that_shares_the_state(engine: Engine) -> None:
    work = Work()
    running = work.start(engine)
    with Engine(engine.settings, points=frozenset({"license"})) as other:
        assert decide(other) == "allow"
        with stopped(other):
            assert there(running.result(60).result).facts["stopped"] is True
            assert (decide(engine), decide(other)) == ("deny", "deny")
        assert (decide(engine), decide(other)) == ("allow", "allow")


# covers: C68.1
@pytest.mark.own_opa
def test_while_opa_is_down_the_owner_of_the_state_can_stop_and_no_one_can_lift(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_again = partial(SupervisionLimits, restart_first_seconds=600)
    monkeypatch.setattr("engine.opa.supervisor.SupervisionLimits", never_again)
    with Engine(settings, points=frozenset({"license"})) as engine:
        work = Work()
        running = work.start(engine)
        assert isinstance(engine.opa, Generation)
        stop(there(engine.opa.pid))
        monkeypatch.setattr(there(engine.opa.server._client), "_limits", replace(settings.opa, answer_seconds=0.5))
        token = Context(caller=Caller(via=Via.TOKEN, principal="officer", approves=("administration",)))
        asked = {"act": "stop", "id": uuid4().hex, "stop": {"scope": "all"}}
        assert engine.administer(asked, token).done is None
        done = engine.administer(asked, ANA)
        assert there(done.done)["id"] == asked["id"]
        assert done.answer.fault is None
        assert there(running.result(60).result).facts["stopped"] is True
        assert engine.administer({"act": "lift_stop", "id": asked["id"], "reason": "over"}, ANA).done is None
        assert decide(engine) == "deny"
        assert [row.lifted_at for row in engine.store().stops(9)] == [None]
    assert [line["status"] for line in lines(settings.state) if line["kind"] == "result"].count(
        "stopped_without_policy"
    ) == 1


def test_a_repeated_key_does_not_keep_an_allow_alive(engine: Engine) -> None:
    context = replace(OTHER, idempotency_key="once")
    assert decide(engine, context) == "allow"
    with stopped(engine):
        got = engine.decide("license", ALLOWED, context=context)
        assert (got.decision.outcome, there(got.fault).remedy) == ("deny", NEW_KEY)
    assert decide(engine, context) == "allow"


# covers: C68.1
def test_a_stop_kills_subagents(engine: Engine) -> None:
    with subagents(engine, program(), OTHER) as own:
        child = child_of(own.spawn(ASK, "wait"))
        until(lambda: own.poll(ASK, child).turns)
        pid = json.loads(own.poll(ASK, child).turns[0])["pid"]
        with stopped(engine):
            until(lambda: not alive(pid))
            assert own.poll(ASK, child).decision.outcome == "deny"
        until(lambda: there(own.poll(ASK, child).result).facts["state"] == "killed")  # once its end is noted


# covers: C68.1
def test_a_stop_ends_an_episode_which_goes_on_once_it_is_lifted(engine: Engine) -> None:
    called, hang = threading.Event(), threading.Event()

    def slow(_: Turn) -> ActorReply:
        called.set()
        hang.wait(60)
        return ActorReply('{"propose_resolution": true}', {"tokens": 1, "spend_micros": 1})

    definition = episode([proposal(resolution=True)], [proposal(resolution=True)])
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(engine.episode, definition, {"agent_b": slow}, "stopped-1", OTHER)
        assert called.wait(60)
        with stopped(engine):
            done = running.result(60)
            assert (done.end, there(done.fault).code, done.rejections) == (None, "stopped", ())
            again = engine.episode(definition, None, "stopped-1", OTHER)
            assert there(again.fault).code == "stopped"
        hang.set()
    ended = there(engine.episode(definition, None, "stopped-1", OTHER).end)
    assert (ended.reason, ended.penalties) == ("completed", {"agent_a": 0, "agent_b": 0})


def test_a_stop_ends_the_process_of_a_tool_and_waits_for_no_thread() -> None:
    signal_ = StopSignal()
    with ThreadPoolExecutor(2) as pool:
        hang = threading.Event()
        thread = pool.submit(in_thread, lambda: hang.wait(60), {}, 60.0, 100, Effects(), signal_)
        process = pool.submit(in_process, isolated_tools.hang, {"duration": 600.0}, 600.0, 100, Effects(), {}, signal_)
        until(lambda: len(signal_._calls) == 2)
        signal_.set()
        assert there(thread.result(60).failure).class_ == "ToolStoppedError"
        assert there(process.result(60).failure).class_ == "ToolProcessError"
        hang.set()
    assert not signal_.awaited


def test_a_stop_callback_runs_once_and_immediately_if_registered_later() -> None:
    calls: list[str] = []

    def broken() -> None:
        raise OSError

    one = StopSignal()
    one.then(broken)
    one.then(lambda: calls.append("before"))
    one.set()
    one.then(lambda: calls.append("after"))
    assert calls == ["before", "after"]


def test_an_unreadable_state_ends_running_work(settings: Settings) -> None:
    with Engine(settings, points=frozenset({"license"})) as engine:
        work = Work()
        running = work.start(engine)
        state: Path = settings.state / "state.sqlite3"
        state.rename(state.with_suffix(".away"))
        assert there(running.result(60).result).facts["stopped"] is True
        state.with_suffix(".away").rename(state)


def test_the_record_of_stops_verifies(engine: Engine) -> None:
    with stopped(engine):
        pass
    acts = [line["input"]["act"] for line in lines(engine.settings.state) if line.get("point") == "administration"]
    assert acts[-2:] == ["stop", "lift_stop"]
    assert verify(engine.settings.state).ok
