"""PostgreSQL killed, stopped, full: nothing that was told is lost, the rest is refused, and it recovers by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from engine.engine import Engine
from engine.errors import StateError
from engine.model import Outcome
from engine.settings import Settings
from engine.state import open_shared
from engine.state.postgres.database import PostgresDatabase
from engine.state.rows import Counter, MemoryRow, StateLimits, StopRow
from engine.state.store import Store
from tests.api.serving import ALLOWED
from tests.facilities import needs
from tests.postgres import SERVING, Server, frozen, running, shared
from tests.processes import in_child, python, rest, said, send_line, until
from tests.proxy import Proxy
from tests.state.samples import NOW, PATIENT, address_file, together
from tests.state.test_processes import WRITER, hold_what_was_told

T = TypeVar("T")

ONE = Counter("n", "k", 0)
QUICK = StateLimits(answer_seconds=1.0, wait_seconds=0.5)
DEADLINE = 30.0
"""Seconds, far more than the limits of any operation here together, far less than a wait without end."""


@pytest.fixture
def own() -> Iterator[Server]:
    with running() as server:
        yield server


@contextmanager
def hurried(store: Store) -> Iterator[None]:
    """Cut off what takes longer than QUICK within the block, also what is in progress; before and after, none is."""
    database = store._database
    assert isinstance(database, PostgresDatabase)
    deadlines, before = database._deadlines, database._limits
    database._limits, deadlines._seconds = QUICK, QUICK.answer_seconds
    with deadlines._guard:
        due = time.monotonic() + QUICK.answer_seconds
        deadlines._busy.update({key: (one, min(due, own)) for key, (one, own) in deadlines._busy.items()})
    yield
    database._limits, deadlines._seconds = before, before.answer_seconds


def answer(ask: Callable[[], T]) -> T | None:
    """What a state answers; None where it cannot be used."""
    try:
        return ask()
    except StateError:
        return None


SPENDER = """
import sys, threading
from pathlib import Path
from engine.engine import Engine
from engine.errors import StateError
from engine.model import Outcome
from engine.settings import Settings
from engine.state import open_shared
from engine.state.rows import Counter, StateLimits
from tests.state.samples import NOW, opened, together

with opened(Path(sys.argv[1]), StateLimits()) as store:
    print("ready", flush=True)
    input()
    counter, gone = Counter("spend", "all", 0), threading.Event()
    def spend(thread):
        allowed = failed = n = 0
        while n < int(sys.argv[3]) or not gone.is_set():
            n += 1
            hold = f"{sys.argv[2]} {thread} {n}"
            try:
                before = store.reserve(hold, (counter,), NOW)[0]
            except StateError:
                failed += 1
                if not gone.is_set():
                    gone.set()
                    print("gone", flush=True)
                before = int(sys.argv[4])
            if before < int(sys.argv[4]):
                allowed += 1
                print("allowed", hold, flush=True)
                continue
            try:
                store.release(hold)
            except StateError:  # it is released later
                pass
        return allowed, failed
    done = together(8, spend)
    print("done", sum(one for one, _ in done), sum(two for _, two in done), flush=True)
    input()
"""


def test_a_budget_of_three_engines_is_exact_while_the_server_is_killed_and_started_again(
    own: Server, tmp_path: Path
) -> None:
    """Requests that fail give back what they may have taken, so in the end exactly the budget is used and allowed."""
    budget, state = 150, tmp_path / "state"
    address_file(state).write_text(address := own.address(own.database(), SERVING), encoding="utf-8")
    with (
        python(SPENDER, state, "a", 400, budget) as one,
        python(SPENDER, state, "b", 400, budget) as two,
        python(SPENDER, state, "c", 400, budget) as three,
    ):
        engines = (one, two, three)
        assert [said(engine) for engine in engines] == ["ready"] * 3
        with shared(address) as store:
            for engine in engines:
                send_line(engine)
            until(lambda: store.used(Counter("spend", "all", 0), NOW) > budget // 10)
        told: list[list[str]] = [[], [], []]

        def read_until(word: str) -> None:
            for lines, engine in zip(told, engines, strict=True):
                while not (lines and lines[-1].startswith(word)):
                    lines.append(said(engine))

        own.kill()
        read_until("gone")
        own.start()
        read_until("done")
        failed = sum(int(lines[-1].split()[2]) for lines in told)
        allowed = [line for lines in told for line in lines if line.startswith("allowed")]
        with shared(address) as store:
            until(lambda: store.used(Counter("spend", "all", 0), NOW) == len(allowed))
            for number in range(budget - len(allowed)):  # what failed requests gave back was not for others any more
                assert store.reserve(f"rest {number}", (Counter("spend", "all", 0),), NOW)[0] < budget
            assert store.reserve("more", (Counter("spend", "all", 0),), NOW)[0] == budget
        assert len(set(allowed)) == len(allowed) <= budget
        assert failed > 0  # the server was really gone meanwhile
        for engine in engines:
            send_line(engine)


def test_acknowledged_writes_survive_a_kill_of_server_and_engine(own: Server, tmp_path: Path) -> None:
    state, told = tmp_path / "state", []
    address_file(state).write_text(address := own.address(own.database(), SERVING), encoding="utf-8")
    for round_ in range(3):
        with python(WRITER, state, round_ * 100_000, 1_000_000, 0) as process:
            heard = [said(process) for _ in range(30 + 40 * round_)]
            if round_ % 2:
                process.kill()
                heard += rest(process)
                own.kill()
            else:
                own.kill()
                while not heard[-1].startswith("failed"):
                    heard.append(said(process))
                process.kill()
                heard += [line for line in rest(process) if not line.startswith("failed")]
        assert "open" in heard
        told += [line for line in heard if not line.startswith("failed")]
        told += ["open"] * sum(line.startswith("failed") for line in heard)  # each of these may have counted
        own.start()
        with shared(address) as store:
            hold_what_was_told(store, told)


def test_an_open_state_recovers_by_itself_when_the_server_is_back(own: Server) -> None:
    with shared(own.address(own.database(), SERVING)) as store:
        together(8, lambda number: store.reserve(str(number), (ONE,), NOW))
        own.kill()
        with hurried(store):
            for use in (
                lambda: store.used(ONE, NOW),
                lambda: store.reserve("x", (ONE,), NOW),
                lambda: store.token("", NOW),
            ):
                began = time.monotonic()
                with pytest.raises(StateError, match="cannot be reached"):
                    use()
                assert time.monotonic() - began < DEADLINE
            assert not store.writable()
            with pytest.raises(StateError):
                store.release("0")  # given back once the server is there again
            own.start()
            until(store.writable)
            until(lambda: answer(lambda: store.used(ONE, NOW)) == 7)
        assert not store.failed


def test_a_restart_between_two_requests_is_not_noticed(own: Server) -> None:
    with shared(own.address(own.database(), SERVING)) as store:
        met = threading.Barrier(8, timeout=60)  # each has a connection of its own
        together(8, lambda _: store._database.read(lambda _: met.wait()))
        own.stop()
        own.start()
        for _ in range(10):
            assert store.used(ONE, NOW) == 0


def test_a_hanging_server_is_cut_off_at_the_deadline_and_then_fails_fast(own: Server) -> None:
    with shared(own.address(own.database(), SERVING)) as store:
        assert together(4, lambda number: store.reserve(str(number), (ONE,), NOW))
        with hurried(store):
            with frozen(own):
                began = time.monotonic()
                with pytest.raises(StateError, match="did not answer in time"):
                    store.used(ONE, NOW)
                assert QUICK.answer_seconds <= time.monotonic() - began < DEADLINE
                for _ in range(1000):
                    with pytest.raises(StateError, match=r"did not answer in time|cannot be reached"):
                        store.stops_in_force()
                assert time.monotonic() - began < DEADLINE
                assert not store.writable()
            until(store.writable)
        assert store.used(ONE, NOW) == 4


@pytest.fixture
def proxy(own: Server) -> Iterator[Proxy]:
    with closing(Proxy(own.socket)) as proxy:
        yield proxy


def waiting(store: Store) -> int:
    """Operations that could not be given back yet."""
    assert isinstance(store._database, PostgresDatabase)
    return len(store._database._failed)


def test_a_reservation_delivered_after_its_release_counts_nothing(own: Server, proxy: Proxy) -> None:
    """A network that was partitioned delivers late what was sent before, on a connection that was cut meanwhile."""
    with shared(own.address(own.database(), SERVING, proxy.port)) as store:
        assert store.reserve("first", (ONE,), NOW) == (0,)
        proxy.stall()
        with hurried(store):
            with pytest.raises(StateError, match="did not answer in time"):
                store.reserve("late", (ONE,), NOW)
            with pytest.raises(StateError):
                store.release("late")
            proxy.let_new()
            until(lambda: not waiting(store))  # given back
        proxy.heal()
        until(lambda: not proxy.delayed())
        assert store.used(ONE, NOW) == 1
        assert store.reserve("next", (ONE,), NOW) == (1,)


def test_a_key_whose_request_was_refused_for_a_fault_is_free_again(own: Server, proxy: Proxy) -> None:
    """A caller that was told to try again uses the same key, as it should."""
    with shared(own.address(own.database(), SERVING, proxy.port)) as store:
        assert store.begin("scope", "first", "body", NOW).kind == "new"
        proxy.stall(requests=False)  # it is taken, and the answer does not arrive
        with hurried(store):
            with pytest.raises(StateError, match="did not answer in time"):
                store.begin("scope", "key", "body", NOW)
            proxy.heal()
            until(lambda: store.writable() and not waiting(store))
        assert store.begin("scope", "key", "body", NOW).kind == "new"
        assert store.begin("scope", "first", "body", NOW).kind == "pending"


def test_a_long_outage_loses_no_reservation_to_release(
    own: Server, proxy: Proxy, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused at once has taken nothing, and fills no list of what must be given back."""
    monkeypatch.setattr("engine.state.StateLimits", lambda: PATIENT)
    chosen = replace(settings, database=own.address(own.database(), SERVING, proxy.port))
    with Engine(chosen, values=("budgets.budgets.license.all={limit: 5, window_seconds: 31536000}",)) as engine:
        store = engine.store()
        assert engine.decide("license", ALLOWED).decision.outcome is Outcome.ALLOW
        proxy.stall()
        with hurried(store):
            for _ in range(12):
                assert engine.decide("license", ALLOWED).decision.findings[0].code == "engine.state_unavailable"
            assert waiting(store) <= 1  # only one was sent
            proxy.heal()
            until(lambda: store.writable() and not waiting(store))
        outcomes = [engine.decide("license", ALLOWED).decision.outcome for _ in range(6)]
        assert outcomes == [*[Outcome.ALLOW] * 4, *[Outcome.DENY] * 2]


def test_an_engine_that_is_stopped_in_a_transaction_frees_its_locks(own: Server) -> None:
    script = """
import os, signal, sys
from tests.postgres import shared
from tests.state.samples import NOW
from engine.state.rows import Counter, StateLimits
with shared(sys.argv[1], StateLimits()) as store:
    def operation(connection):
        connection.execute('UPDATE budgets SET used = used + 1')
        print('locked', flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    store._database.write(operation)
"""
    address = own.address(own.database(), SERVING)
    with shared(address) as store, shared(address, replace(PATIENT, lock_seconds=0.5)) as hasty:
        store.reserve("one", (ONE,), NOW)
        with psycopg.connect(address) as other:
            other.execute("UPDATE admission_engine.budgets SET used = used + 1")
            with pytest.raises(StateError, match="did not answer in time"):
                hasty.reserve("two", (ONE,), NOW)
            other.rollback()
        with python(script, address) as stopped:
            assert said(stopped) == "locked"
            assert store.reserve("three", (ONE,), NOW) == (1,)  # once PostgreSQL has ended that transaction
            os.kill(stopped.pid, signal.SIGCONT)
        assert store.used(ONE, NOW) == 2


def test_a_server_restarted_with_weaker_durability_is_refused(own: Server) -> None:
    with shared(own.address(own.database(), SERVING)) as store:
        assert store.writable()
        own.stop()
        own.start(fsync="off")

        def reason() -> str:
            with pytest.raises(StateError) as caught:
                store.reserve("one", (ONE,), NOW)
            return caught.value.message

        with hurried(store):
            until(lambda: "fsync = off" in reason())  # once a connection was tried
            assert not store.writable()
            own.stop()
            own.start()
            until(store.writable)


def test_a_stop_is_in_force_or_nothing_is_decided_when_the_server_hangs(own: Server) -> None:
    """What was read is too old after a moment; then a decision needs the server, which does not answer."""
    with shared(own.address(own.database(), SERVING)) as store:
        store.add_stop(StopRow("all", "", "alice", NOW, id="stop-1"))
        assert [one.id for one in store.stops_in_force()] == ["stop-1"]
        with hurried(store):
            with frozen(own):
                until(lambda: answer(store.stops_in_force) is None)
            until(lambda: answer(store.stops_in_force) is not None)
        assert [one.id for one in store.stops_in_force()] == ["stop-1"]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    folder = Path(f"/tmp/apg-disk-{os.getpid()}")  # noqa: S108  (a short path, made by root)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(folder)], check=True)  # noqa: S607
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607
        folder.rmdir()


@needs("root", "mounts")
def test_a_full_disk_denies_and_loses_no_acknowledged_write(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(8 << 20))
    with running(small_disk) as own, shared(own.address(own.database(), SERVING)) as store:
        store.reserve("one", (ONE,), NOW)
        kept: list[str] = []

        def fill() -> None:
            while True:
                row = MemoryRow("o", os.urandom(500_000).hex(), "a" * 64, "s", "o", "n", "d", NOW)
                store.add_memory(row)
                kept.append(row.id)

        with pytest.raises(StateError, match="the disk of PostgreSQL is full"):
            fill()
        assert len(kept) > 3
        assert all(store.memory(one) is not None for one in kept)  # reading goes on
        ballast.unlink()
        assert store.reserve("two", (ONE,), NOW) == (1,)
        assert store.used(ONE, NOW) == 2


def test_a_closed_or_forked_state_is_refused(own: Server) -> None:
    address = own.address(own.database(), SERVING)
    with shared(address) as store:
        assert store.writable()
        assert in_child(lambda: _refused_in_child(store))
        assert store.writable()  # the sockets of the parent are whole
    store.close()
    with pytest.raises(StateError, match="it is closed"):
        store.used(ONE, NOW)


def _refused_in_child(store: Store) -> bool:
    try:
        store.used(ONE, NOW)
    except StateError as error:
        store.close()
        return "another process" in error.message
    return False


def test_a_state_whose_threads_cannot_start_leaves_nothing_open(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    address = own.address(own.database(), SERVING)
    real = threading.Thread.start
    for most in range(4):
        started: list[threading.Thread] = []

        def start(thread: threading.Thread, most: int = most, started: list[threading.Thread] = started) -> None:
            if len(started) >= most:
                raise RuntimeError("can't start new thread")
            started.append(thread)
            real(thread)

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", start)
            with pytest.raises(StateError, match="no thread can be started"):
                open_shared(address)
        for thread in started:
            thread.join(DEADLINE)
            assert not thread.is_alive()
