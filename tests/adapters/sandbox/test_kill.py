"""Whatever a program leaves behind, nothing of it lives when the answer is there, or when the engine is gone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Program, RunResult, Status
from admission_adapters.sandbox.run import user
from admission_adapters.sandbox.run.process import NOTHING, run_in
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import Sandbox, start
from tests.adapters.sandbox.programs import (
    BOUNDS,
    ENVIRONMENT,
    bounds,
    emptied,
    inhabitants,
    namespace_of,
    program,
    ran,
)
from tests.expect import there
from tests.facilities import needs
from tests.processes import descriptors_left, gone, in_child, leaks

pytestmark = needs("bubblewrap")

ROOT = Path(__file__).parents[3]

DAEMONS = """
import os, signal, time
for number in range(5):
    if not os.fork():
        os.setsid()
        for what in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(what, signal.SIG_IGN)
        os.close(1)
        time.sleep(600)
print('left', flush=True)
"""


def watched(given: Program, seconds: float = 20.0, without: frozenset[str] = NOTHING) -> tuple[RunResult, list[int]]:
    """The end, and who still lived in there when it was told."""
    within = bounds(wall_seconds=seconds)
    sandbox = start(Setup(within, given.environment, without))
    namespace = namespace_of(sandbox.child)
    return run_in(sandbox, given), inhabitants(namespace)


# covers: C34.1 C84
@pytest.mark.parametrize("last", ["", "time.sleep(600)", "os.kill(os.getpid(), 9)", "while True: print('x' * 999)"])
def test_no_daemon_outlives_the_answer(last: str) -> None:
    wanted = {"": Status.OK, "time.sleep(600)": Status.TIMEOUT_WALL, "os.kill(os.getpid(), 9)": Status.SIGNAL}
    for number in range(5):
        for seconds in (0.4, 2.0, 10.0, 50.0) if "sleep" in last else (20.0,):
            ended, alive = watched(program(DAEMONS + last), seconds)
            assert (ended.status, alive) == (wanted.get(last, Status.OUTPUT_LIMIT), [])
            if left := ended.stdout.startswith(b"left"):
                break
        assert left, number


def test_daemons_are_killed_at_the_wall_clock_limit() -> None:
    ended, alive = watched(program(DAEMONS + "time.sleep(600)"), 0.5)
    assert 0.5 <= ended.wall_seconds < 600
    assert (ended.status, alive) == (Status.TIMEOUT_WALL, [])


def test_a_cancelled_run() -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    ended = Bubblewrap().run(program("import time; time.sleep(600)"), BOUNDS, cancel)
    assert (ended.status, ended.limit) == (Status.CANCELLED, "cancelled")


def test_a_run_can_be_cancelled_at_any_moment_without_leaks() -> None:
    chance = random.Random(7)  # noqa: S311  (moments, not secrets)

    def cancelled() -> None:
        cancel = threading.Event()
        timer = threading.Timer(chance.random() * 0.06, cancel.set)
        timer.start()
        ended = Bubblewrap().run(program("import time; time.sleep(0.02)"), BOUNDS, cancel)
        timer.join()
        assert ended.status in {Status.OK, Status.CANCELLED}

    assert not leaks(cancelled)
    cancel = threading.Event()
    cancel.set()
    assert Bubblewrap().run(program("print(1)"), BOUNDS, cancel).status is Status.CANCELLED


def test_a_sandbox_outlives_the_thread_that_started_it() -> None:
    made: list[Sandbox] = []
    asking = threading.Thread(target=lambda: made.append(start(Setup(BOUNDS, ENVIRONMENT))))
    asking.start()
    asking.join()
    time.sleep(0.2)
    assert run_in(made[0], program("print('still here')")).stdout == b"still here\n"


def test_a_sandbox_takes_no_program_of_another_environment() -> None:
    sandbox = start(Setup(BOUNDS, {}))
    namespace = namespace_of(sandbox.child)
    with pytest.raises(ValueError, match="with the same environment"):
        run_in(sandbox, program("print(1)"))
    assert inhabitants(namespace) == []


def test_a_sandbox_that_is_not_used_ends_with_close() -> None:
    sandbox = start(Setup(BOUNDS, ENVIRONMENT))
    namespace = namespace_of(sandbox.child)
    assert inhabitants(namespace)
    sandbox.close()
    assert inhabitants(namespace) == []


def test_a_monitor_that_is_killed_is_a_sandbox_error() -> None:
    sandbox = start(Setup(BOUNDS, ENVIRONMENT))
    namespace = namespace_of(sandbox.child)
    threading.Timer(0.3, sandbox.process.kill).start()
    ended = run_in(sandbox, program("import time; time.sleep(600)"))
    assert (ended.status, ended.exit_code, ended.signal) == (Status.SANDBOX_ERROR, None, None)
    assert inhabitants(namespace) == []


def test_a_sandbox_that_died_before_its_program_is_a_sandbox_error() -> None:
    sandbox = start(Setup(BOUNDS, ENVIRONMENT))
    os.kill(sandbox.child, signal.SIGKILL)
    assert gone(sandbox.child)
    assert run_in(sandbox, program("print(1)")).status is Status.SANDBOX_ERROR


def test_killing_the_first_process_from_inside_does_nothing() -> None:
    ended = ran("import os; os.kill(1, 9); os.kill(1, 15); print('here')")
    assert (ended.status, ended.stdout) == (Status.OK, b"here\n")


def test_killing_the_launcher_is_reported_as_a_signal() -> None:
    for number in (9, 32, 33):  # the C library lets nobody block the last two
        ended = ran(f"import os, time; os.kill(os.getppid(), {number}); time.sleep(600)")
        assert (ended.status, ended.signal) == (Status.SIGNAL, number)


def test_a_self_sent_sigxcpu_is_a_signal_and_not_a_timeout() -> None:
    ended = ran("import os; os.kill(os.getpid(), 24)")
    assert (ended.status, ended.signal, ended.limit) == (Status.SIGNAL, 24, None)


def test_other_signals_do_not_reach_the_launcher() -> None:
    others = "[number for number in range(1, 65) if number not in (9, 19, 32, 33)]"
    ended = ran(f"import os\nfor number in {others}: os.kill(os.getppid(), number)\nprint('here')")
    assert (ended.status, ended.stdout) == (Status.OK, b"here\n")


def test_a_program_does_not_inherit_blocked_signals() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGXCPU, signal.SIGTERM})
    try:
        asked = ThreadPoolExecutor(1).submit(ran, "import signal; print(signal.pthread_sigmask(0, ()))").result()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert asked.stdout == b"set()\n"


@pytest.mark.full
def test_a_start_that_is_interrupted_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ran("print(1)")

    def interrupted(*_: object, **__: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("admission_adapters.sandbox.run.start._line", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ran("print(1)")

    def started() -> None:
        with pytest.raises(KeyboardInterrupt):
            ran("print(1)")

    assert not leaks(started)


def test_no_descriptor_left_is_a_sandbox_error() -> None:
    ran("print(1)")

    def exhausted() -> None:
        for more in (0, 2, 7, 12):
            with descriptors_left(more):
                ended = ran("print(1)")
            assert (ended.status, ended.stderr) == (Status.SANDBOX_ERROR, b"it cannot be made: too many open files")

    assert not leaks(exhausted)


def test_a_run_with_ignored_sigchld_is_a_sandbox_error() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        ended = ran("print(1)")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert ended.status is Status.SANDBOX_ERROR
    assert b"SIGCHLD" in ended.stderr


ENGINE = """
import sys
sys.path.insert(0, {root!r})
from admission_adapters.sandbox.run.process import run_in
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import start
from tests.adapters.sandbox.programs import BOUNDS, ENVIRONMENT, namespace_of, program
sandbox = start(Setup(BOUNDS, ENVIRONMENT))
print(namespace_of(sandbox.child), flush=True)
run_in(sandbox, program({code!r}))
"""


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.3])
def test_an_engine_that_is_killed_takes_its_sandbox_along(delay: float) -> None:
    text = ENGINE.format(root=str(ROOT), code=DAEMONS + "time.sleep(600)")
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as engine:
        namespace = there(engine.stdout).readline().decode().strip()
        assert namespace.startswith("pid:")
        time.sleep(delay)
        engine.kill()
    assert emptied(namespace)


# covers: C84
@needs("root")
def test_an_orphaned_sandbox_is_ended_by_the_next_engine() -> None:
    sandbox = start(Setup(BOUNDS, ENVIRONMENT, frozenset({"kill_tree"})))
    namespace = namespace_of(sandbox.child)
    try:
        user._end_orphan(sandbox.child, user.sandbox_user().uid)
        assert inhabitants(namespace)  # it has its monitor
        sandbox.process.kill()
        sandbox.process.wait()
        user.swept.__wrapped__(0)
        assert emptied(namespace)
    finally:
        sandbox.close()
    assert ran("print(1)").stdout == b"1\n"


def test_a_forked_engine_can_run_a_sandbox() -> None:
    ran("print(1)")
    assert in_child(lambda: ran("print(2)").stdout == b"2\n")
