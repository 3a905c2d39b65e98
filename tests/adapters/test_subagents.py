"""Subagents as real processes under real decisions: nothing without a permit, nothing twice, nothing left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

from admission_adapters.llm_provider import VARIABLES
from admission_adapters.subagents.family import Reply, Requester, Subagents
from admission_adapters.subagents.process import HistoryLimits, Program, SubagentProcess
from engine.engine import Engine
from engine.errors import EngineError, StateError
from engine.flow import Context
from engine.model import Caller, Outcome, Via
from engine.settings import Settings
from engine.state.rows import ChildState
from engine.subagents import subagents
from tests.adapters.permits import MISUSED, misused
from tests.command import lines
from tests.expect import there
from tests.processes import alive, gone, leaks, opened_by, until

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ASK = Requester("chat-7", "lee", "acme", policy="orchestrator", profile="coding")
CONTEXT = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"), run="r-1")
SOON = 30.0
"""Seconds; far more than anything here takes."""

CHILD = """
import json, os, signal, subprocess, sys, time

def say(**fields):
    print(json.dumps(fields, ensure_ascii=False), flush=True)

task = json.loads(sys.stdin.readline())
say(pid=os.getpid(), heard=task["text"], conversation=task["conversation"], environment=sorted(os.environ))
for word in task["text"].split():
    name, _, number = word.partition("=")
    if name == "say":
        for one in range(int(number)):
            say(turn=one)
    elif name == "long":
        print("é" * int(number), flush=True)
    elif name == "brood":
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
        say(other=other.pid)
    elif name == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(stubborn=True)
    elif name == "polite":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(told=json.loads(sys.stdin.readline()))
        break
    elif name == "wait":
        time.sleep(600)
"""


@dataclass
class Home:
    """An engine, its subagents, and where its records are."""

    engine: Engine
    own: Subagents
    state: Path
    started: list[str] = field(default_factory=list)

    def results(self) -> list[dict[str, Any]]:
        """The lines that say what came of permitted work."""
        return [record for record in lines(self.state) if record["kind"] == "result"]

    def row(self, child: str) -> tuple[str, str]:
        row = there(there(self.engine.services).store().child(child))
        return row.parent, row.state


def program(text: str = CHILD, **environment: str) -> Program:
    return Program((sys.executable, "-c", text), Path("/"), {"PATH": os.environ["PATH"], **environment})


@pytest.fixture
def home(settings: Settings) -> Iterator[Home]:
    with at_home(settings) as found:
        yield found


@contextmanager
def at_home(settings: Settings, *values: str, text: str = CHILD) -> Iterator[Home]:
    with (
        Engine(settings, values=values, now=lambda: NOW, points=frozenset({"subagent"})) as engine,
        subagents(engine, program(text), CONTEXT) as own,
    ):
        yield Home(engine, own, settings.state)


def child_of(reply: Reply) -> str:
    assert reply.fault is None, reply.fault
    child: str = there(reply.result).facts["child"]
    return child


def said(home: Home, child: str, key: str) -> Any:
    """What a subagent said under this key; waits for it."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        for line in home.own.poll(ASK, child).turns:
            if line.startswith("{") and key in (found := json.loads(line)):
                return found[key]
    raise AssertionError(f"it never said `{key}`")


def came_to(reply: Reply) -> tuple[str, str]:
    """The status of an operation, and the state of its subagent then."""
    result = there(reply.result)
    return result.status, result.facts["state"]


def codes(reply: Reply) -> list[str]:
    return sorted({finding.code for finding in reply.decision.findings})


# covers: B22 B25
def test_a_subagent_is_started_watched_and_ends(home: Home) -> None:
    reply = home.own.spawn(ASK, "say=2 wait")
    child = child_of(reply)
    assert came_to(reply) == ("done", "running")
    assert home.row(child) == ("chat-7", "running")
    assert said(home, child, "heard") == "say=2 wait"
    assert said(home, child, "conversation") == child
    pid = said(home, child, "pid")
    assert os.getpgid(pid) == pid != os.getpgid(0)
    assert codes(home.own.poll(replace(ASK, conversation="chat-8"), child)) == ["not_parent"]
    assert codes(home.own.spawn(replace(ASK, conversation=child), "say=1")) == ["nested_spawn"]
    home.own.kill(ASK, child)
    assert not alive(pid)


def test_a_subagent_has_the_environment_that_was_given_and_no_other(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_ENGINE", "1")
    reply = home.own.run(ASK, "say=0")
    environment = json.loads(reply.turns[0])["environment"]
    assert "PATH" in environment
    assert set(environment) <= {"PATH", "LC_CTYPE"}  # Python sets the second one for itself


# covers: A66.2
def test_a_subagent_gets_no_variable_of_the_remote_model(home: Home) -> None:
    stated = program(OTHER="1", **dict.fromkeys(VARIABLES, "canary-key-1"))
    with subagents(home.engine, stated, CONTEXT) as own:
        reply = own.run(ASK, "say=0")
    assert set(json.loads(reply.turns[0])["environment"]) - {"LC_CTYPE"} == {"PATH", "OTHER"}


# covers: B25.1
def test_running_blocks_until_the_subagent_has_ended(home: Home) -> None:
    reply = home.own.run(ASK, "say=3")
    child = child_of(reply)
    assert came_to(reply) == ("done", "ended")
    assert [json.loads(line).get("turn") for line in reply.turns] == [None, 0, 1, 2]
    assert home.row(child) == ("chat-7", "ended")
    again = home.own.poll(ASK, child, limit_turns=1)
    assert [json.loads(line) for line in again.turns] == [{"turn": 2}]


# covers: B25.1
def test_running_blocks_until_the_timeout_passes(home: Home) -> None:
    started = time.monotonic()
    reply = home.own.run(ASK, "wait", timeout_seconds=1)
    assert 1 <= time.monotonic() - started < SOON
    child = child_of(reply)
    assert came_to(reply) == ("late", "running")
    pid = said(home, child, "pid")
    assert alive(pid)  # it goes on alone
    assert home.own.kill(ASK, child).result is not None
    assert not alive(pid)


# covers: B25.2
@pytest.mark.parametrize(("how", "left"), [("wait", []), ("polite", [{"type": "cancel"}])])
def test_cancelling_sends_a_message_and_a_signal(home: Home, how: str, left: list[Any]) -> None:
    child = child_of(home.own.spawn(ASK, f"say=1 {how}"))
    said(home, child, "turn")
    reply = home.own.cancel(ASK, child)
    assert came_to(reply) == ("done", "cancelled")
    assert home.row(child) == ("chat-7", "cancelled")
    told = [json.loads(line)["told"] for line in home.own.poll(ASK, child).turns if "told" in line]
    assert told in ([], left)  # the signal may have been first


# covers: B25.2
def test_a_subagent_that_ends_at_the_line_of_a_cancel_is_cancelled(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    send = SubagentProcess.send

    def send_and_wait(process: SubagentProcess, line: bytes) -> None:
        send(process, line)
        if b"cancel" in line:
            assert process.over.wait(SOON)

    monkeypatch.setattr(SubagentProcess, "send", send_and_wait)
    child = child_of(home.own.spawn(ASK, "polite"))
    assert came_to(home.own.cancel(ASK, child)) == ("done", "cancelled")
    assert home.row(child) == ("chat-7", "cancelled")


# covers: B25.2-3
@pytest.mark.full
def test_a_cancel_without_effect_is_reported_late_and_a_kill_succeeds(home: Home) -> None:
    child = child_of(home.own.spawn(ASK, "stubborn wait"))
    pid = said(home, child, "pid")
    said(home, child, "stubborn")
    reply = home.own.cancel(ASK, child, timeout_seconds=1)
    assert came_to(reply) == ("late", "running")
    assert alive(pid)
    assert home.row(child) == ("chat-7", "running")
    reply = home.own.kill(ASK, child)
    assert came_to(reply) == ("done", "killed")
    assert not alive(pid)
    assert home.row(child) == ("chat-7", "killed")


# covers: B25.3
@pytest.mark.full(after=1)
@pytest.mark.parametrize("how", ["kill", "end", "close"])
def test_no_process_of_its_group_outlives_a_subagent(home: Home, how: str) -> None:
    child = child_of(home.own.spawn(ASK, "brood wait"))
    pid, other = said(home, child, "pid"), said(home, child, "other")
    assert os.getpgid(other) == pid
    if how == "kill":
        home.own.kill(ASK, child)
    elif how == "end":
        os.kill(pid, signal.SIGTERM)  # from outside, the process alone
        assert home.own._find(child).over.wait(SOON)
        assert home.row(child) == ("chat-7", "ended")
    else:
        home.own.close()
    assert not alive(pid)
    assert gone(other)


# covers: B25
def test_a_subagent_is_ended_when_its_lifetime_is_over(settings: Settings) -> None:
    for seconds in (1, 5, 30):
        with at_home(settings, f"subagents.lifetime_seconds={seconds}") as home:
            reply = home.own.run(ASK, "brood stubborn wait")
            assert came_to(reply) == ("done", "killed")
        if len(reply.turns) == 3:
            break
    first, second, _ = map(json.loads, reply.turns)
    assert not alive(first["pid"])
    assert gone(second["other"])


# covers: B25
@pytest.mark.full
def test_a_subagent_that_does_not_take_its_task_in_time_is_killed(settings: Settings) -> None:
    with at_home(settings, text="import time; print('here', flush=True); time.sleep(600)") as home:
        reply = home.own.spawn(ASK, "x" * 1_000_000, timeout_seconds=1)
        child = child_of(reply)
        assert came_to(reply) == ("late", "killed")
        assert home.row(child) == ("chat-7", "killed")
        assert child_of(home.own.spawn(ASK, "short", timeout_seconds=1))  # the control: a pipe holds it


def test_a_long_task_arrives_whole(home: Home) -> None:
    text = "é" * 300_000
    reply = home.own.run(ASK, text)
    assert reply.turns[0].startswith('{"pid"')
    transcript = home.own._find(child_of(reply)).transcript
    assert "é" * 5_000 in transcript.last(1, 65_536)[0]


# covers: B19 B20.1
def test_polling_gives_a_bounded_preview(home: Home) -> None:
    child = child_of(home.own.run(ASK, "say=70 long=3000"))
    assert len(home.own.poll(ASK, child).turns) == 50
    assert len(home.own.poll(ASK, child, limit_turns=51).turns) == 50
    assert len(home.own.poll(ASK, child, limit_turns=3).turns) == 3
    (last,) = home.own.poll(ASK, child, limit_turns=1).turns
    assert last == "é" * 1000  # 2000 bytes
    assert codes(home.own.poll(ASK, child, limit_turns=0)) == ["limit_turns_invalid"]


# covers: B20.2
def test_a_cut_inside_a_character_leaves_valid_text(settings: Settings) -> None:
    with at_home(settings, "subagents.line_bytes=7") as home:
        reply = home.own.run(ASK, "long=10")
        assert reply.turns[-1] == "é" * 3


def test_polling_waits_for_the_first_turn_only(settings: Settings) -> None:
    with at_home(settings, text="import sys, time; sys.stdin.readline(); time.sleep(600)") as home:
        child = child_of(home.own.spawn(ASK, "silence"))
        reply = home.own.poll(ASK, child, timeout_seconds=1)
        assert (there(reply.result).status, reply.turns) == ("late", ())


# covers: B25.4
def test_a_repeated_call_with_the_same_key_has_no_second_effect(home: Home) -> None:
    keyed = replace(ASK, key="k-1")
    first = home.own.spawn(keyed, "say=1 wait")
    again = home.own.spawn(keyed, "say=1 wait")
    assert again == first
    child = child_of(first)
    assert len(home.engine.store().children("chat-7", 9)) == 1
    killed = home.own.kill(replace(ASK, key="k-2"), child)
    assert home.own.kill(replace(ASK, key="k-2"), child) == killed
    polled = home.own.poll(replace(ASK, key="k-3"), child)
    assert home.own.poll(replace(ASK, key="k-3"), child) == polled
    assert home.own.run(replace(ASK, key="k-4"), "say=1") == home.own.run(replace(ASK, key="k-4"), "say=1")
    assert len(home.engine.store().children("chat-7", 9)) == 2
    assert Tally(record["facts"]["operation"] for record in home.results()) == {
        "spawn": 1,
        "kill": 1,
        "poll": 1,
        "run": 1,
    }
    other = home.own.spawn(keyed, "another task")
    assert codes(other) == ["engine.idempotency_conflict"]


# covers: B25
def test_concurrent_calls_with_one_key_have_one_effect(home: Home) -> None:
    keyed = replace(ASK, key="k-1")
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: home.own.spawn(keyed, "wait"), range(8)))
    children = {child_of(reply) for reply in replies if reply.decision.outcome is Outcome.ALLOW}
    assert len(children) == 1
    assert {code for reply in replies for code in codes(reply)} <= {"engine.idempotency_pending"}
    assert len(home.engine.store().children(None, 9)) == 1


def test_a_keyed_result_is_replayed_only_in_its_own_process(home: Home, settings: Settings) -> None:
    keyed = replace(ASK, key="k-1")
    child_of(home.own.run(keyed, "say=1"))
    with subagents(home.engine, program(), CONTEXT) as other:
        again = other.run(keyed, "say=1")
    assert again.decision.outcome is Outcome.ALLOW
    assert there(again.fault).code == "engine.subagent_forgotten"
    assert len(home.results()) == 1
    assert settings.state == home.state


# covers: B25.6
def test_each_operation_writes_its_audit_fields(home: Home) -> None:
    child = child_of(home.own.spawn(ASK, "say=1 wait"))
    said(home, child, "turn")
    before = len(home.results())
    home.own.poll(ASK, child, limit_turns=1)
    home.own.cancel(ASK, child)
    home.own.kill(ASK, child)
    ran = child_of(home.own.run(ASK, "say=2"))
    found = home.results()
    own = {"child": child, "parent": "chat-7"}
    assert found[0]["facts"].items() >= {**own, "operation": "spawn", "state": "running", "turns": 0}.items()
    assert [record["facts"] for record in found[before:]] == [
        {**own, "operation": "poll", "state": "running", "turns": 1, "said": 2},
        {**own, "operation": "cancel", "state": "cancelled", "turns": 0, "said": 2},
        {**own, "operation": "kill", "state": "cancelled", "turns": 0, "said": 2},
        {"operation": "run", "child": ran, "parent": "chat-7", "state": "ended", "turns": 3, "said": 3},
    ]


# covers: B18.1 B24
def test_of_two_concurrent_spawns_for_the_last_quota_unit_one_starts(settings: Settings) -> None:
    with at_home(settings, "budgets.quotas.subagent.conversation.limit=1") as home:
        barrier = threading.Barrier(2)

        def start(_: int) -> Reply:
            barrier.wait(SOON)
            return home.own.spawn(ASK, "wait")

        with ThreadPoolExecutor(2) as pool:
            replies = list(pool.map(start, range(2)))
        assert Tally(tuple(codes(reply)) for reply in replies) == {(): 1, ("spawn_quota:conversation",): 1}
        assert len(home.engine.store().children(None, 9)) == 1


def test_a_refused_request_starts_no_process(home: Home, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    touching = program(f"open({str(marker)!r}, 'w')")
    with subagents(home.engine, touching) as own:
        for ask in (replace(ASK, policy="deny_all"), replace(ASK, profile=None), replace(ASK, policy="confirm_all")):
            refused = own.run(ask, "go")
            assert refused.decision.outcome is not Outcome.ALLOW
            assert refused.fault is None
        assert not marker.exists()
        assert own.run(ASK, "go").decision.outcome is Outcome.ALLOW
        assert marker.exists()  # the control


def test_a_confirmed_operation_is_carried_out_once_it_is_approved(home: Home) -> None:
    ask = replace(ASK, policy="confirm_all")
    asked = home.own.run(ask, "say=1").decision
    assert (asked.outcome, asked.approval is not None) == (Outcome.CONFIRM, True)
    assert asked.approval is not None
    home.engine.store().resolve(asked.approval.id, "granted", "user:ana", None, int(NOW.timestamp()))
    reply = home.own.run(replace(ask, approval=asked.approval.id), "say=1")
    assert there(reply.result).facts["state"] == "ended"


@pytest.mark.parametrize(
    "broken",
    [
        Program(("/nowhere/at/all",), Path("/"), {}),
        Program((sys.executable,), Path("/nowhere/at/all"), {}),
        Program(("a\0b",), Path("/"), {}),
    ],
    ids=["command", "folder", "zero"],
)
def test_a_program_start_failure_is_reported_and_its_child_ended(home: Home, broken: Program) -> None:
    with subagents(home.engine, broken) as own:
        reply = own.spawn(ASK, "go")
    assert there(reply.fault).code == "engine.subagent_start"
    assert [row.state for row in home.engine.store().children(None, 9)] == ["ended"]
    assert [record["status"] for record in home.results()] == ["engine.subagent_start"]


def test_a_process_is_killed_if_its_threads_cannot_start(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    popen = subprocess.Popen

    def counted(*arguments: Any, **options: Any) -> Any:
        process = popen(*arguments, **options)
        started.append(process.pid)
        return process

    def no_thread(*_: Any) -> NoReturn:
        raise RuntimeError("can't start new thread")

    def refused() -> None:
        with pytest.raises(RuntimeError):
            SubagentProcess(program("import time; time.sleep(600)"), SOON, HistoryLimits(), lambda _: None)

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", counted)
        patch.setattr(threading.Thread, "start", no_thread)
        assert not leaks(refused)
    assert all(map(gone, started))
    assert home.own.run(ASK, "say=1").fault is None  # the control


def test_a_closed_adapter_starts_no_subagent(home: Home) -> None:
    home.own.close()
    reply = home.own.spawn(ASK, "wait")
    assert there(reply.fault).code == "engine.subagent_start"
    assert [row.state for row in home.engine.store().children(None, 9)] == ["ended"]


@dataclass
class _NoFamily:
    told: list[str] = field(default_factory=list)

    def started(self, child: str, parent: str) -> None:  # noqa: ARG002  (as the interface has it)
        raise StateError("no state", remedy="none")

    def ended(self, child: str, state: ChildState) -> None:  # noqa: ARG002
        self.told.append(state)


def test_a_child_that_cannot_be_registered_is_not_started(home: Home, tmp_path: Path) -> None:
    marker, family = tmp_path / "started", _NoFamily()

    def decide(request: Any, executor: Any, key: Any, approval: Any) -> Any:
        return home.engine.decide("subagent", request, executor, Context(idempotency_key=key, approval=approval))

    with Subagents(decide, family, program(f"open({str(marker)!r}, 'w')")) as own:
        reply = own.run(ASK, "go")
    assert isinstance(reply.fault, EngineError)
    assert reply.fault.code == "engine.state_unavailable"
    assert (marker.exists(), family.told) == (False, [])


@pytest.mark.parametrize("operation", ["poll", "cancel", "kill"])
def test_a_child_of_another_process_cannot_be_controlled(home: Home, operation: str) -> None:
    child = child_of(home.own.spawn(ASK, "wait"))
    with subagents(home.engine, program(), CONTEXT) as other:
        call: Callable[[Requester, str], Reply] = getattr(other, operation)
        reply = call(ASK, child)
    assert there(reply.fault).code == "engine.subagent_unknown"
    assert home.row(child) == ("chat-7", "running")


def test_a_bounded_number_of_ended_subagents_can_be_polled(home: Home) -> None:
    own = Subagents(home.own._decide, home.own._family, program(), history=HistoryLimits(subagents=2))
    with own:
        children = [child_of(own.run(ASK, f"say={number}")) for number in range(3)]
        assert own.poll(ASK, children[0]).fault is not None
        for known in children[1:]:
            assert own.poll(ASK, known).turns


def test_a_bounded_number_of_keyed_results_is_remembered(home: Home) -> None:
    own = Subagents(home.own._decide, home.own._family, program(), history=HistoryLimits(subagents=2))
    asks = [replace(ASK, key=f"k-{number}") for number in range(3)]
    with own:
        gave = [own.run(ask, "say=1") for ask in asks]
        forgotten, *known = [own.run(ask, "say=1") for ask in asks]
    assert known == gave[1:]
    assert there(forgotten.fault).code == "engine.subagent_forgotten"


def test_a_permit_for_another_operation_or_child_does_nothing(home: Home) -> None:
    """An intermediary between adapter and engine cannot swap one operation or subagent for another."""
    one, two = (child_of(home.own.spawn(ASK, "wait")) for _ in range(2))

    def swapped(changes: dict[str, Any]) -> Subagents:
        def decide(request: Any, executor: Any, key: Any, approval: Any) -> Any:
            return home.own._decide({**request, **changes}, executor, key, approval)

        own = Subagents(decide, home.own._family, program())
        own._running = home.own._running
        return own

    for changes in ({"operation": "poll"}, {"child_conversation_id": two}):
        reply = swapped(changes).kill(ASK, one)
        assert there(reply.fault).code == "engine.limit_unenforceable"
    for child in (one, two):
        assert home.row(child)[1] == "running"


@pytest.mark.parametrize("wrong", MISUSED)
def test_a_misused_permit_kills_no_subagent(home: Home, wrong: str) -> None:
    child = child_of(home.own.spawn(ASK, "wait"))

    def decide(request: Any, executor: Any, key: Any, approval: Any) -> Any:
        return home.own._decide(request, lambda own, job: executor(misused(own)[wrong], job), key, approval)

    other = Subagents(decide, home.own._family, program())
    other._running = home.own._running
    reply = other.kill(ASK, child)
    assert (there(reply.fault).code, home.row(child)[1]) == ("engine.permit_missing", "running")


def test_a_process_that_closes_its_pipes_early_is_still_seen_to_its_end() -> None:
    ended: list[str] = []
    text = "import os, time; os.close(0); os.close(1); time.sleep(0.2)"
    process = SubagentProcess(program(text), SOON, HistoryLimits(), ended.append)
    process.send(b"x" * 1_000_000)
    assert process.input_taken.wait(SOON)
    assert process.over.wait(SOON)
    process.send(b"too late")
    process.cancel(b"too late")
    process.kill()
    assert (process.state, ended) == ("ended", ["ended"])


def test_a_process_that_reuses_the_pid_of_an_ended_one_is_left_alone() -> None:
    process = SubagentProcess(program("pass"), SOON, HistoryLimits(), lambda _: None)
    assert process.over.wait(SOON)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as other:
        process._process.pid = other.pid  # as the system may give it to another one
        process.cancel(b"stop")
        process.kill()
        other.communicate(b"\n", SOON)
    assert (other.returncode, process.state) == (0, "ended")


def test_concurrent_starts_and_kills_leave_no_process_pipe_or_thread(home: Home) -> None:
    def pipes() -> int:
        return sum(str(path).startswith("pipe:") for path in opened_by(os.getpid()))

    def many(round_: int) -> None:
        with ThreadPoolExecutor(8) as pool:
            asks = [replace(ASK, conversation=f"chat-{round_}-{number}", user=f"u-{number}") for number in range(12)]
            children = list(pool.map(lambda ask: (ask, child_of(home.own.spawn(ask, "wait"))), asks))
            list(pool.map(lambda pair: home.own.kill(*pair), children))
        assert {home.row(child)[1] for _, child in children} == {"killed"}

    many(0)
    before = pipes()
    many(1)
    until(lambda: pipes() <= before)
    assert home.own._running == {}
    for thread in threading.enumerate():
        if thread.name == "engine-subagent":
            thread.join(SOON)
            assert not thread.is_alive()


# covers: B47.2-3
def test_another_user_cannot_poll_cancel_or_kill_a_subagent(home: Home) -> None:
    child = child_of(home.own.spawn(ASK, "wait"))
    eve = replace(CONTEXT, caller=Caller(via=Via.PROCESS, principal="eve"))
    request = {"conversation": "chat-7", "user": "lee", "account": "acme", "child_conversation_id": child}
    request |= {"policy": "orchestrator", "profile": "coding"}
    for operation in ("poll", "cancel", "kill"):
        asked = {**request, "operation": operation}
        denied = home.engine.check("subagent", asked, eve).decision
        assert [finding.code for finding in denied.findings] == ["not_own_subagent"]
        assert home.engine.check("subagent", asked, CONTEXT).decision.outcome == "allow"
