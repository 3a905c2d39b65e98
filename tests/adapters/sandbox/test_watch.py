"""What ends a run, and what it is called then: with pipes and processes in the place of a sandbox's own."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from admission_adapters.sandbox.model import Program
from admission_adapters.sandbox.run import watch as watching
from admission_adapters.sandbox.run.cgroup import Hierarchy, MemoryGroup
from admission_adapters.sandbox.run.handshake import is_dead
from admission_adapters.sandbox.run.outcome import RunObservations
from admission_adapters.sandbox.run.proc import LOOK_SECONDS
from admission_adapters.sandbox.run.recipe import BUBBLEWRAP, Setup
from admission_adapters.sandbox.run.start import END_SECONDS, Sandbox
from admission_adapters.sandbox.run.watch import RunSupervision
from tests.adapters.sandbox.programs import bounds
from tests.expect import there

SECONDS = 60.0
"""After which a sandbox that nobody ended is ended, so that a test fails and does not hang."""

_PIECE = 1 << 16
_READ = ["/usr/bin/cat"]
_BUSY = [sys.executable, "-c", "while True: pass"]


class Undying(Sandbox):
    """One that the kernel does not end."""

    def kill(self) -> None:
        """Leave it as it is."""


class Run:
    """A monitor, the first process beside it, and the far ends of the pipes."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.pipes: dict[str, int] = {}
        self.group: MemoryGroup | None = None
        self.undying = False
        self.first = _READ

    def says(self, **said: bytes) -> Run:
        """Put this into the pipes."""
        for name, data in said.items():
            if name not in self.pipes:
                self._pipe(name)
            os.write(self.pipes[f"to_{name}"], data)
        return self

    def later(self, seconds: float, **said: bytes) -> Run:
        """Put this into the pipes while it is watched."""
        for name in said:
            if name not in self.pipes:
                self._pipe(name)
        self._timer(seconds, lambda: self.says(**said))
        return self

    def seen(self, *without: str, cancel: threading.Event | None = None, **fields: Any) -> RunObservations:
        """Watch it to its end."""
        self.monitor = self._process(_READ)
        self.child = self._process(self.first)
        self.pidfd = os.pidfd_open(self.child.pid)
        self.stack.callback(os.close, self.pidfd)
        follower = threading.Thread(target=self._follow)
        follower.start()
        self.stack.callback(follower.join)
        self.stack.callback(self.child.kill)
        self._timer(SECONDS, self.child.kill)
        for name in ("stdout", "stderr", "report", "status"):
            if name not in self.pipes:
                self._pipe(name)
        report, stdout, stderr, status = (self.pipes[name] for name in ("report", "stdout", "stderr", "status"))
        far = (report, stdout, stderr, status)
        kind = Undying if self.undying else Sandbox
        within = bounds(**{"wall_seconds": 20.0, "stdout_bytes": 10, "stderr_bytes": 10, **fields})
        setup = Setup(within, {}, frozenset(without))
        processes = (self.monitor, self.child.pid, self.pidfd)
        started = kind(setup, BUBBLEWRAP, *processes, -1, -1, -1, *far, self.group, None, self.stack)
        began = time.monotonic()
        seen = RunSupervision(started, cancel, Program()).until_dead()
        assert time.monotonic() - began < SECONDS
        return seen

    def _follow(self) -> None:
        """A monitor goes after its child."""
        self.child.wait()
        self.monitor.kill()

    def _pipe(self, name: str) -> None:
        out, into = os.pipe2(os.O_CLOEXEC)
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 1 << 20)
        self.stack.callback(os.close, out)
        self.stack.callback(os.close, into)
        self.pipes |= {name: out, f"to_{name}": into}

    def _process(self, command: list[str]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        self.stack.callback(there(process.stdin).close)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def _timer(self, seconds: float, work: Any) -> None:
        timer = threading.Timer(seconds, work)
        timer.start()
        self.stack.callback(timer.join)
        self.stack.callback(timer.cancel)


@pytest.fixture
def run() -> Iterator[Run]:
    with ExitStack() as stack:
        yield Run(stack)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[MemoryGroup]:
    """A folder that is as a group of version 2 is."""
    made = MemoryGroup(Hierarchy(tmp_path, 2), 1 << 26)
    yield made
    if made.oom is not None:
        os.close(made.oom)


def _events(group: MemoryGroup, kills: int) -> None:
    (group._folder / "memory.events").write_text(f"oom 0\noom_kill {kills}\n", encoding="ascii")


@pytest.mark.parametrize(
    ("cancel", "since", "most"),
    [
        (None, None, LOOK_SECONDS),
        (threading.Event(), None, watching._TICK_SECONDS),
        (threading.Event(), "_ended", watching.ARTIFACT_SECONDS),
        (threading.Event(), "_killed", END_SECONDS),
    ],
)
def test_the_wait_between_checks_is_as_long_as_possible(
    cancel: threading.Event | None, since: str | None, most: float
) -> None:
    waiting: Any = SimpleNamespace(setup=Setup(bounds(), {}))
    watch = RunSupervision(waiting, cancel, Program())
    if since is not None:
        setattr(watch, since, time.monotonic())
    assert most * 500 < watch._wait() <= most * 1000


WHOLE = b"E 0 1000\n"


def test_a_complete_report_ends_a_run(run: Run) -> None:
    seen = run.says(report=WHOLE, stdout=b"o", status=b'{"exit-code": 0}\n').seen()
    assert (seen.killed, seen.undead, seen.report.complete) == (None, False, True)
    assert (bytes(seen.stdout), seen.stdout_bytes, bytes(seen.stderr), seen.stderr_bytes) == (b"o", 1, b"", 0)
    assert (seen.cpu_seconds, seen.exit_line) == (None, None)  # the launcher told both
    assert run.child.wait(SECONDS) == -signal.SIGKILL


@pytest.mark.parametrize("said", [b"Z\n", WHOLE + b"more"])
def test_an_answer_out_of_order_ends_it_at_once(run: Run, said: bytes) -> None:
    seen = run.says(report=said).seen("kill_tree")
    assert (seen.killed, seen.report.broken) == (None, True)


def test_a_silent_death_is_reported_with_the_monitors_exit_code(run: Run) -> None:
    run.first = ["/usr/bin/true"]
    seen = run.says(status=b'{"exit-code": 137}\n').seen()
    assert (seen.killed, seen.undead, seen.exit_line, seen.single) == (None, False, 137, False)


@pytest.mark.parametrize(
    ("fields", "without", "killed"),
    [
        ({"wall_seconds": 1e-9}, (), "wall"),
        ({"wall_seconds": 0.2}, (), "wall"),
        ({"wall_seconds": 1e-9}, ("wall_clock",), None),
    ],
)
def test_the_wall_clock_limit_applies_unless_omitted(
    run: Run, fields: dict[str, Any], without: tuple[str, ...], killed: str | None
) -> None:
    if fields["wall_seconds"] < 0.1:
        run.says(report=WHOLE)
    seen = run.seen(*without, **fields)
    assert (seen.killed, seen.undead) == (killed, False)
    if killed == "wall" and not seen.report.complete:
        assert seen.cpu_seconds is not None
    assert is_dead(run.pidfd)


@pytest.mark.parametrize(("after", "killed"), [(0.0, "cancelled"), (0.2, "cancelled"), (None, None)])
def test_a_cancellation_is_noticed_before_and_while_it_runs(run: Run, after: float | None, killed: str | None) -> None:
    cancel = threading.Event()
    if after is None:
        run.says(report=WHOLE)
    elif after:
        run._timer(after, cancel.set)
    else:
        cancel.set()
    seen = run.seen(cancel=cancel)
    assert seen.killed == killed
    assert seen.wall_seconds < SECONDS / 2


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize(
    ("count", "without", "ends"), [(9, (), []), (10, (), []), (11, (), ["output"]), (11, ("output_cap",), [])]
)
@pytest.mark.parametrize("said", [b"", WHOLE])
def test_output_is_cut_and_ends_a_program_above_its_bound(
    run: Run, name: str, count: int, without: tuple[str, ...], ends: list[str], said: bytes
) -> None:
    seen = run.says(**{name: b"x" * count, "report": said}).seen(*without, wall_seconds=20.0 if said or ends else 0.3)
    assert seen.killed == (name if ends else None if said else "wall")
    assert getattr(seen, name) == b"x" * min(count, 10)
    assert getattr(seen, f"{name}_bytes") == count


@pytest.mark.parametrize(
    ("count", "errors", "without", "killed"),
    [
        (_PIECE, 0, (), None),
        (_PIECE + 1, 0, (), "stdout"),
        (_PIECE + 1, 0, ("output_cap",), None),
        (_PIECE, 11, (), "stderr"),
        (_PIECE + 1, 11, (), "stdout"),
    ],
)
def test_output_left_in_the_pipes_counts_toward_the_limit(
    run: Run, count: int, errors: int, without: tuple[str, ...], killed: str | None
) -> None:
    run.says(report=WHOLE, stdout=b"x" * count, stderr=b"x" * errors)
    seen = run.seen(*without, stdout_bytes=_PIECE)
    assert (seen.killed, seen.stdout_bytes) == (killed, count)


def test_the_first_cause_of_an_end_is_reported(run: Run, group: MemoryGroup) -> None:
    _events(group, 1)
    run.group = group
    seen = run.says(report=WHOLE, stdout=b"x" * 11).seen(wall_seconds=1e-9)
    assert (seen.killed, seen.stdout_bytes) == ("wall", 11)


@pytest.mark.full
def test_the_artifact_transfer_does_not_count_as_program_time(run: Run) -> None:
    seen = run.says(report=WHOLE).later(2.2, report=b"Z\n").seen(wall_seconds=2.0, artifact_files=1)
    assert (seen.killed, seen.report.complete) == (None, True)
    assert seen.wall_seconds < 2.0


def test_the_artifact_transfer_has_its_own_deadline(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "ARTIFACT_SECONDS", 0.2)
    seen = run.says(report=WHOLE).seen(artifact_files=1)
    assert (seen.killed, seen.report.complete) == ("artifacts", False)


def test_a_partial_report_does_not_end_a_run(run: Run) -> None:
    seen = run.says(report=b"E 0 ").seen(wall_seconds=0.3, artifact_files=1)
    assert (seen.killed, seen.report.wait_status) == ("wall", None)


@pytest.mark.full(after=1)
@pytest.mark.parametrize(("without", "killed"), [((), "cpu"), (("rlimit_cpu",), "wall")])
def test_the_cpu_time_of_the_process_tree_is_limited(run: Run, without: tuple[str, ...], killed: str) -> None:
    run.first = _BUSY
    seen = run.seen(*without, wall_seconds=2.0 if without else SECONDS, cpu_seconds=0)
    assert seen.killed == killed
    assert without or there(seen.cpu_seconds) > 0.5


def test_an_unkillable_process_is_reported_and_not_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "END_SECONDS", 0.3)
    run.undying = True
    began = time.monotonic()
    seen = run.seen(wall_seconds=0.1)
    assert (seen.killed, seen.undead, seen.exit_line) == ("wall", True, None)
    assert 0.4 <= time.monotonic() - began < SECONDS
    assert not is_dead(run.pidfd)


def test_without_the_tree_kill_only_the_monitor_ends(run: Run) -> None:
    seen = run.says(report=WHOLE).later(0.2, report=b"Z\n").seen("kill_tree", artifact_files=1)
    assert (seen.killed, seen.undead, seen.report.complete) == (None, False, True)
    assert run.monitor.wait(SECONDS) == -signal.SIGKILL
    assert not is_dead(run.pidfd)


@pytest.mark.parametrize("kills", [0, 1])
def test_a_memory_kill_is_detected_from_the_cgroup_events(run: Run, group: MemoryGroup, kills: int) -> None:
    _events(group, kills)
    run.group = group
    seen = run.says(report=WHOLE).seen()
    assert (seen.killed, seen.report.complete) == ("memory" if kills else None, True)


def test_memory_that_runs_out_ends_the_whole_tree(run: Run, group: MemoryGroup) -> None:
    _events(group, 0)
    run.group = group
    group.oom = os.eventfd(1, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    seen = run.says(stdout=b"o").seen(wall_seconds=SECONDS / 2)
    assert (seen.killed, seen.undead, bytes(seen.stdout)) == ("memory", False, b"o")
    assert seen.wall_seconds < SECONDS / 4
