"""A hundred runs that leave daemons behind: nothing of them is alive when their answer is there."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Program, RunResult, Status
from admission_adapters.sandbox.probe.canaries import as_user
from admission_adapters.sandbox.run.user import sandbox_user
from tests.adapters.sandbox.hostile.canaries import PYTHON, end, marked
from tests.adapters.sandbox.programs import bounds
from tests.facilities import needs
from tests.processes import soon, until

_RUNS, _AT_ONCE = 100, 2
_SECONDS_AFTER = 0.05
_DAEMONS = """\
import os, signal, sys, time
for kind in range(5):
    if os.fork() == 0:
        if kind != 1:
            os.setsid()
        if kind == 2 and os.fork():
            os._exit(0)
        if kind == 3:
            for number in (1, 2, 3, 13, 15):
                signal.signal(number, signal.SIG_IGN)
        if kind == 4:
            os.closerange(0, 64)
        time.sleep(600)
        os._exit(0)
sys.stdout.write("left")
sys.stdout.flush()
"""
_ENDS = {
    Status.OK: "",
    Status.RUNTIME_ERROR: "os._exit(3)\n",
    Status.SIGNAL: "os.kill(os.getpid(), 9)\n",
    Status.TIMEOUT_WALL: "time.sleep(600)\n",
    Status.OUTPUT_LIMIT: "os.write(1, b'x' * 5000)\ntime.sleep(600)\n",
    Status.FORBIDDEN_SYSCALL: "import ctypes\nctypes.CDLL(None).unshare(0x10000000)\n",
}

pytestmark = needs("bubblewrap")


# covers: C58 C84
@pytest.mark.full
def test_of_a_hundred_runs_with_daemons_nothing_survives() -> None:
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = list(threads.map(_run, range(_RUNS)))
    kinds = list(_ENDS)
    assert [ended.status for ended, _, _ in found] == [kinds[number % len(kinds)] for number in range(_RUNS)]
    assert all(ended.stdout.startswith(b"left") for ended, _, _ in found)
    assert [len(alive) for _, alive, _ in found] == [0] * _RUNS
    assert [len(alive) for _, _, alive in found] == [0] * _RUNS


def test_without_the_sandbox_daemons_survive_a_process_group_kill() -> None:
    token = _token()
    process = subprocess.Popen(
        [PYTHON, "-c", _DAEMONS],
        env={"RUN": token},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        **as_user(sandbox_user().other),
    )
    try:
        assert process.wait(60) == 0
        until(lambda: len(_sessions(token) - {process.pid}) == 4)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(_SECONDS_AFTER)
        assert len(_sessions(token) - {process.pid}) == 4
    finally:
        end(token)


def test_running_daemons_are_visible_to_the_host() -> None:
    token, cancel = _token(), threading.Event()
    program = Program("python", _DAEMONS + "time.sleep(600)\n", environment={"RUN": token})
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(Bubblewrap().run, program, bounds(wall_seconds=600.0, processes=16), cancel)
        seen = soon(lambda: len(marked(token)) >= 6)
        cancel.set()
        assert running.result().status is Status.CANCELLED
    assert seen
    assert marked(token) == []


def _run(number: int) -> tuple[RunResult, list[int], list[int]]:
    """Its end, what of it lives at once, and what lives 50 ms later."""
    token, at_once = _token(), list[int]()
    status, last = list(_ENDS.items())[number % len(_ENDS)]
    program = Program("python", _DAEMONS + last, environment={"RUN": token})
    for seconds in (0.5, 2.0, 8.0, 32.0) if status is Status.TIMEOUT_WALL else (20.0,):
        ended = Bubblewrap().run(program, bounds(wall_seconds=seconds, processes=16))
        at_once += marked(token)
        if ended.stdout:
            break
    time.sleep(_SECONDS_AFTER)
    return ended, at_once, marked(token)


def _sessions(token: str) -> set[int]:
    found = set()
    for pid in marked(token):
        with suppress(ProcessLookupError):
            found.add(os.getsid(pid))
    return found


def _token() -> str:
    return f"daemon-{secrets.token_hex(12)}"
