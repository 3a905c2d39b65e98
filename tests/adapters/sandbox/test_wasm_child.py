"""The process of a module by itself: what it does before it is let go, and how it tells the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from admission_adapters.sandbox.model import Bounds
from admission_adapters.sandbox.probe.canaries import Canaries
from admission_adapters.sandbox.run.proc import tree_seconds
from admission_adapters.sandbox.run.user import sandbox_user
from admission_adapters.sandbox.wasm import child as wasm_child
from admission_adapters.sandbox.wasm import modules
from admission_adapters.sandbox.wasm.backend import Wasmtime, packages
from admission_adapters.sandbox.wasm.probe import _Probe
from tests.adapters.sandbox.programs import bounds
from tests.adapters.sandbox.test_wasm import program
from tests.expect import there
from tests.facilities import needs
from tests.processes import alive, gone

pytestmark = needs("wasmtime")

BOUNDS = bounds(memory_bytes=32 << 20)


class Child:
    """One process, and the engine's ends of its pipes."""

    def __init__(self, stack: ExitStack, *before: str) -> None:
        self._ready, ready = os.pipe()
        go, self._go = os.pipe()
        self._report, report = os.pipe()
        self.job = os.memfd_create("job")
        given = (ready, go, self.job, report)
        command = [sys.executable, "-I", "-S", "-B", wasm_child.__file__, str(packages()), *map(str, given)]
        self.process = stack.enter_context(
            subprocess.Popen(
                [*before, *command],
                pass_fds=given,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
            )
        )
        for end in (ready, go, report):
            os.close(end)
        for end in (self._ready, self._report, self.job):
            stack.callback(os.close, end)
        stack.callback(self.forget)

    def is_ready(self) -> bool:
        return os.read(self._ready, 1) == b"R"

    def forget(self) -> None:
        """Be an engine that is gone."""
        with suppress(OSError):
            os.close(self._go)

    def go(self, code: str, within: Bounds = BOUNDS, **changed: object) -> bytes:
        """Let it run a module; what it reports."""
        self.begin(code, within, **changed)
        return self.report()

    def begin(self, code: str, within: Bounds, **changed: object) -> None:
        job = {**json.loads(Wasmtime().work(program(code), within, frozenset())), **changed}
        os.pwrite(self.job, json.dumps(job).encode(), 0)
        os.write(self._go, b"G")

    def report(self) -> bytes:
        told = b""
        while piece := os.read(self._report, 4096):
            told += piece
        return told


@pytest.fixture
def child() -> Iterator[Child]:
    with ExitStack() as stack:
        yield Child(stack)


def test_a_module_that_is_never_released_does_not_run(child: Child) -> None:
    assert child.is_ready()
    child.forget()

    assert child.process.wait() == 125
    assert child.report() == b""


_ENGINE = """
import os, subprocess, sys
os.write(1, b"%d\\n" % subprocess.Popen(sys.argv[1:], close_fds=False).pid)
os.read(0, 1)
"""


def test_a_module_whose_engine_dies_before_confinement_does_not_run() -> None:
    """From then on the kernel ends it with its engine; here that is gone a moment earlier."""
    with ExitStack() as stack:
        child = Child(stack, sys.executable, "-c", _ENGINE)
        number = int(there(child.process.stdout).readline())
        assert child.is_ready()
        there(child.process.stdin).close()
        child.process.wait()

        assert child.go(modules.echo()) == b""
        assert gone(number)


def test_a_module_that_cannot_be_confined_does_not_run(child: Child) -> None:
    assert child.is_ready()
    assert child.go(modules.echo(), filter="ff" * 8) == b""
    assert child.process.wait() == 1
    assert there(child.process.stdout).read() == b""


def status(report: bytes) -> int:
    word, number, _ = report.split()
    assert word == b"E"
    return int(number)


@pytest.mark.parametrize(
    ("turns", "seconds", "ended"),
    [(1000, 1, 0), (100_000_000, 10, 0), (1 << 62, 1, 24)],
    ids=["few", "many", "endless"],
)
def test_the_runtime_ends_a_module_when_its_time_is_used_up_and_reports_it(
    child: Child, turns: int, seconds: int, ended: int
) -> None:
    assert child.is_ready()
    assert status(child.go(modules.spin(turns), bounds(memory_bytes=32 << 20, cpu_seconds=seconds))) == ended
    assert child.process.wait() == 0


def random_at(place: int, count: int) -> str:
    """A module that ends with the answer of `random_get` for this part of its one page."""
    sort = "(func $random_get (param i32 i32) (result i32))"
    return f"""(module (import "wasi_snapshot_preview1" "random_get" {sort})
      (import "wasi_snapshot_preview1" "proc_exit" (func $end (param i32))) (memory (export "memory") 1)
      (func (export "_start") (call $end (call $random_get (i32.const {place}) (i32.const {count})))))"""


@pytest.mark.parametrize(
    ("place", "count", "answer"),
    [(0, 65536, 0), (65536 - 16, 16, 0), (65536, 0, 0), (65536 - 16, 17, 21), (-1, 1, 21), (0, -1, 21), (-1, -1, 21)],
)
def test_random_bytes_stay_in_the_memory_of_the_module(child: Child, place: int, count: int, answer: int) -> None:
    assert child.is_ready()
    assert status(child.go(random_at(place, count))) == answer << 8


@pytest.mark.parametrize(
    ("without", "act", "held", "done"),
    [
        ("close_fds", "descriptors", "none", "did"),
        ("rlimit_nofile", "files_opened", "refused:EMFILE", "did"),
        ("rlimit_as", "memory", "refused:ENOMEM", "did"),
        ("limiter", "wasi_memory", "refused:48", "did"),
    ],
)
def test_a_protection_is_there_unless_it_is_left_out(without: str, act: str, held: str, done: str) -> None:
    with Canaries(sandbox_user().other) as canaries:
        for left, word in ((frozenset(), held), (frozenset({without}), done)):
            words: dict[str, str] = {}
            probe = _Probe(canaries, left)
            (probe._memory if act == "wasi_memory" else probe._acts)(words, left)
            assert words[act] == word


def test_the_kernel_counts_its_time_exactly_where_the_runtime_does_not(child: Child) -> None:
    """The limit of a whole second that stands behind it would come later."""
    assert child.is_ready()
    within = bounds(memory_bytes=32 << 20, cpu_seconds=1)
    assert child.go(modules.spin(1 << 62), within, without=["epoch"]) == b""
    _, ended, took = os.wait4(child.process.pid, 0)
    child.process.returncode = os.waitstatus_to_exitcode(ended)
    assert child.process.returncode == -24
    assert took.ru_utime + took.ru_stime < 1.7


def test_without_both_time_limits_a_module_keeps_running(child: Child) -> None:
    assert child.is_ready()
    within = bounds(memory_bytes=32 << 20, cpu_seconds=1)
    child.begin(modules.spin(1 << 62), within, without=["epoch", "rlimit_cpu"])
    while alive(child.process.pid) and tree_seconds(child.process.pid) < 1.6:
        time.sleep(0.01)
    assert alive(child.process.pid)
    child.process.kill()


@pytest.mark.parametrize("without", [[], ["new_session"]], ids=["own", "shared"])
def test_its_session_is_its_own_unless_that_is_left_out(child: Child, without: list[str]) -> None:
    assert child.is_ready()
    child.begin(modules.flood(1, 1 << 30), BOUNDS, without=without)
    there(child.process.stdout).read(1)  # it runs
    assert (os.getsid(child.process.pid) == child.process.pid) is not bool(without)
    child.process.kill()
