from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Bounds, NotStartedError, Program, RunResult, Status
from admission_adapters.sandbox.run import pool as pooling
from admission_adapters.sandbox.run import process as running
from admission_adapters.sandbox.run.pool import Pooled, _Stock
from admission_adapters.sandbox.run.start import Sandbox
from engine.errors import WorkError
from tests.adapters.sandbox import programs
from tests.adapters.sandbox.hostile.canaries import marked
from tests.expect import there
from tests.facilities import needs
from tests.processes import alive, descriptors_left, gone, in_child, until

_ROOT = Path(__file__).parents[3]
_BOUNDS = programs.bounds(processes=16, artifact_files=4, artifact_bytes=4096)

pytestmark = needs("bubblewrap")


_COLD: list[Program] = []
"""The runs for which nothing was waiting."""


@pytest.fixture(autouse=True)
def _counting(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Bubblewrap.run

    def counted(
        backend: Bubblewrap, program: Program, bounds: Bounds, cancel: threading.Event | None = None
    ) -> RunResult:
        _COLD.append(program)
        return run(backend, program, bounds, cancel)

    _COLD.clear()
    monkeypatch.setattr(Bubblewrap, "run", counted)


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def token() -> str:
    return f"pool-{secrets.token_hex(12)}"


@pytest.fixture
def pool(token: str) -> Iterator[Pooled]:
    with Pooled(2) as started:
        yield started
    assert marked(token) == []


def _program(token: str, code: str = "print(input())", stdin: bytes = b"in", **environment: str) -> Program:
    return Program("python", code, stdin, {"RUN": token, **environment})


def _untimed(ended: RunResult) -> RunResult:
    return replace(ended, wall_seconds=0.0, cpu_seconds=None)


def _firsts(token: str) -> set[int]:
    """The processes that wait: the launchers, for those before them are bubblewrap's own, without environment."""
    return set(marked(token))


_TELLING = """\
import os, sys, resource, json
os.makedirs('artifacts', exist_ok=True)
open('artifacts/out.txt', 'w').write('made')
print(json.dumps({
    'argv': sys.argv, 'path': sys.path, 'flags': list(sys.flags), 'folder': os.getcwd()[:20], 'files': os.listdir('.'),
    'environment': dict(os.environ), 'hash': hash('text'), 'input': sys.stdin.read(), 'uid': os.getuid(),
    'modules': sorted(sys.modules), 'names': sorted(globals()), 'groups': os.getgroups(), 'pid': os.getpid(),
    'limits': [resource.getrlimit(n) for n in range(16) if n != 1], 'root': sorted(os.listdir('/')),
    'open': [n for n in range(3, 64) if os.path.exists('/dev/fd/%d' % n)],
}))
sys.exit(3)
"""


def test_a_warm_sandbox_gives_the_same_result_as_a_cold_one(pool: Pooled, token: str) -> None:
    told = _program(token, _TELLING, b"payload", PYTHONHASHSEED="7")
    bounds = replace(_BOUNDS, stdout_bytes=1 << 16)
    assert pool.prepare(told, bounds) == 2
    warm, cold = pool.run(told, bounds), Bubblewrap().run(told, bounds)
    assert len(_COLD) == 1
    assert (warm.status, warm.exit_code) == (Status.RUNTIME_ERROR, 3)
    assert json.loads(warm.stdout) == json.loads(cold.stdout)
    assert _untimed(warm) == _untimed(cold)
    assert warm.artifacts[0].data == b"made"


def test_a_pool_goes_on_when_there_was_no_descriptor_left(pool: Pooled, token: str) -> None:
    told = _program(token)
    assert pool.prepare(told, _BOUNDS) == 2
    with descriptors_left(0):
        ends = [pool.run(told, _BOUNDS).status for _ in range(4)]
        pool.prepare(told, _BOUNDS, 0.2)
    assert set(ends) <= {Status.OK, Status.SANDBOX_ERROR}
    assert pool.prepare(told, _BOUNDS) == 2


@pytest.mark.parametrize(
    ("code", "status", "seconds"),
    [
        ("import time; time.sleep(60)", Status.TIMEOUT_WALL, 0.2),
        ("print('x' * 10000)", Status.OUTPUT_LIMIT, 20.0),
        ("import ctypes; ctypes.CDLL(None).unshare(0x10000000)", Status.FORBIDDEN_SYSCALL, 20.0),
        ("x = bytearray(2 ** 40)", Status.RUNTIME_ERROR, 20.0),
        ("import os; os.kill(os.getpid(), 9)", Status.SIGNAL, 20.0),
        ("import os\nif os.fork() == 0:\n    os.setsid()\n    __import__('time').sleep(60)", Status.OK, 20.0),
    ],
)
def test_limits_hold_in_a_warm_sandbox(pool: Pooled, token: str, code: str, status: Status, seconds: float) -> None:
    bounds = replace(_BOUNDS, wall_seconds=seconds)
    assert pool.prepare(_program(token), bounds) == 2
    assert pool.run(_program(token, code), bounds).status is status
    assert len(_COLD) == 0


def test_waiting_in_the_pool_does_not_count_as_wall_time(pool: Pooled, token: str) -> None:
    pool.prepare(_program(token), _BOUNDS)
    time.sleep(0.7)
    began = time.monotonic()
    ended = pool.run(_program(token), _BOUNDS)
    assert ended.wall_seconds <= time.monotonic() - began
    assert (ended.status, len(_COLD)) == (Status.OK, 0)


def test_each_sandbox_is_used_once_and_replaced(pool: Pooled, token: str) -> None:
    leave = "import os\nprint(os.path.exists('../left'))\nopen('../left', 'w').write('x')\nopen('/tmp/left', 'w')"
    pool.prepare(_program(token), _BOUNDS)
    first = _firsts(token)
    answers = []
    for _ in range(4):
        answers.append(pool.run(_program(token, leave), _BOUNDS).stdout)
        pool.prepare(_program(token), _BOUNDS)
    assert answers == [b"False\n"] * 4
    assert len(_COLD) == 0
    assert first
    assert not first & _firsts(token)


@pytest.mark.full(after=2)
@pytest.mark.parametrize("field", [one.name for one in fields(Bounds)])
def test_different_limits_start_a_cold_sandbox(pool: Pooled, token: str, field: str) -> None:
    pool.prepare(_program(token), _BOUNDS)
    assert (
        pool.run(_program(token), Bounds(**{**asdict(_BOUNDS), field: getattr(_BOUNDS, field) + 1})).status is Status.OK
    )
    assert len(_COLD) == 1


def test_a_different_environment_or_hash_seed_starts_a_cold_sandbox(pool: Pooled, token: str) -> None:
    pool.prepare(_program(token, PYTHONHASHSEED="1"), _BOUNDS)
    others = (_program(token, PYTHONHASHSEED="2"), _program(token, PYTHONHASHSEED="1", MORE="x"), _program(token))
    for other in others:
        assert pool.run(other, _BOUNDS).status is Status.OK
    assert len(_COLD) == 3


def test_the_pool_size_is_shared_by_kinds_and_never_exceeded(token: str) -> None:
    with Pooled(3) as pool:
        for seed in range(5):
            pool.prepare(_program(token, PYTHONHASHSEED=str(seed)), _BOUNDS)
        until(lambda: len(_firsts(token)) == 3)
        assert [dict(kind.environment)["PYTHONHASHSEED"] for kind in pool._kinds] == ["2", "3", "4"]
    assert _firsts(token) == set()


def test_stale_and_unused_warm_sandboxes_are_ended(token: str) -> None:
    clock = _Clock()
    with Pooled(2, idle_seconds=1.0, clock=clock) as pool:
        pool.prepare(_program(token), _BOUNDS)
        old = _firsts(token)
        clock.now = 0.8
        pool._ask(next(iter(pool._kinds)))
        clock.now = 1.5  # too old, and still asked for
        until(lambda: not _firsts(token) & old)
        clock.now = 5.0
        until(lambda: not pool._kinds and not _firsts(token))
        assert pool.run(_program(token), _BOUNDS).status is Status.OK


def test_close_ends_warm_sandboxes_and_later_runs_are_cold(token: str) -> None:
    pool = Pooled(2)
    pool.prepare(_program(token), _BOUNDS)
    assert len(_firsts(token)) == 2
    pool.close()
    assert _firsts(token) == set()
    assert pool.run(_program(token), _BOUNDS).status is Status.OK
    assert len(_COLD) == 1
    assert _firsts(token) == set()
    pool.close()


@pytest.mark.parametrize("noticed", [True, False], ids=["while it waits", "before its program"])
def test_a_dead_warm_sandbox_is_replaced_by_a_cold_one(
    pool: Pooled, token: str, monkeypatch: pytest.MonkeyPatch, *, noticed: bool
) -> None:
    pool.prepare(_program(token), _BOUNDS)
    for pid in _firsts(token):
        os.kill(pid, signal.SIGKILL)
        assert gone(pid)
    if not noticed:
        monkeypatch.setattr(Sandbox, "alive", True)  # as it was a moment ago
    ended = pool.run(_program(token), _BOUNDS)
    assert (ended.status, ended.stdout, len(_COLD)) == (Status.OK, b"in\n", 1)


def test_a_run_reports_why_no_sandbox_could_be_started(
    pool: Pooled, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: object) -> Sandbox:
        raise NotStartedError("no sandbox today")

    monkeypatch.setattr(pooling, "start", refusing)
    monkeypatch.setattr(running, "start", refusing)
    assert pool.prepare(_program(token), _BOUNDS) == 0
    ended = pool.run(_program(token), _BOUNDS)
    assert (ended.status, ended.stderr) == (Status.SANDBOX_ERROR, b"no sandbox today")


def test_an_invalid_program_is_refused_by_the_pool(pool: Pooled, token: str) -> None:
    pool.prepare(_program(token), _BOUNDS)
    with pytest.raises(WorkError):
        pool.run(_program(token, "\ud800"), _BOUNDS)
    assert pool.run(_program(token), _BOUNDS).status is Status.OK


def test_a_run_in_a_warm_sandbox_can_be_cancelled(pool: Pooled, token: str) -> None:
    pool.prepare(_program(token), _BOUNDS)
    cancel = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(pool.run, _program(token, "import time; time.sleep(60)"), _BOUNDS, cancel)
        cancel.set()
        assert running.result().status is Status.CANCELLED


def test_many_at_once_each_get_their_own_answer(pool: Pooled, token: str) -> None:
    def asked(number: int) -> bytes:
        return pool.run(_program(token, stdin=str(number).encode()), _BOUNDS).stdout

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(asked, range(40))) == [b"%d\n" % number for number in range(40)]


def test_a_forked_child_leaves_the_pool_alone(pool: Pooled, token: str) -> None:
    pool.prepare(_program(token), _BOUNDS)
    before = _firsts(token)

    def in_the_child() -> bool:
        answer = pool.run(_program(token), _BOUNDS).stdout
        pool.close()
        return answer == b"in\n"

    assert in_child(in_the_child)
    assert _firsts(token) == before
    assert pool.run(_program(token), _BOUNDS).status is Status.OK


_ENGINE = """\
import sys, time
from admission_adapters.sandbox.model import Bounds, Program
from admission_adapters.sandbox.run.pool import Pooled
bounds = Bounds(5.0, 5, 268435456, 16, 64, 1048576, 4194304, 4096, 4096, 0, 0)
pool = Pooled(4)
print(pool.prepare(Program("python", "", b"", {"RUN": sys.argv[1]}, 0, "code_exec_agent_0"), bounds), flush=True)
time.sleep(60)
"""


def test_the_death_of_the_engine_ends_all_warm_sandboxes(token: str) -> None:
    engine = subprocess.Popen(
        [sys.executable, "-c", _ENGINE, token], cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with there(engine.stdout) as told:
        assert told.readline() == b"4\n"
    waiting = _firsts(token)
    engine.kill()
    engine.wait()
    assert len(waiting) == 4
    assert all(map(gone, waiting))
    assert not any(alive(pid) for pid in _firsts(token))


class _Waiting:
    """Stands for a sandbox that waits."""


@pytest.mark.parametrize(
    ("size", "kinds", "ends", "missing"),
    [
        (2, {"a": (1.0, [1.0, 1.0])}, [], None),
        (2, {"a": (1.0, [1.0])}, [], "a"),
        (2, {"a": (1.0, [1.0, 1.0, 2.0])}, ["a0"], None),
        (2, {"a": (1.0, [0.9, 1.0])}, ["a0"], "a"),
        (2, {"a": (0.9, [1.0, 1.0])}, ["a0", "a1"], None),
        (2, {"a": (1.0, [1.0]), "b": (1.0, [1.0])}, [], None),
        (2, {"a": (1.0, [1.0]), "b": (1.0, [])}, [], "b"),
        (2, {"a": (1.0, []), "b": (1.0, [])}, [], "b"),
        (2, {"a": (1.0, [1.0]), "b": (1.0, [1.0]), "c": (1.0, [])}, ["a0"], "c"),
        (3, {"a": (1.0, [1.0, 1.0, 1.0]), "b": (1.0, [1.0])}, ["a0", "a1"], None),
    ],
)
def test_the_pool_selects_surplus_sandboxes_and_the_next_kind_to_start(
    size: int, kinds: dict[str, tuple[float, list[float]]], ends: list[str], missing: str | None
) -> None:
    pool: Any = Pooled(size, idle_seconds=1.0, clock=lambda: 2.0)
    names: dict[object, str] = {}
    for name, (asked, times) in kinds.items():
        waiting = [(at, _Waiting()) for at in times]
        names |= {sandbox: f"{name}{number}" for number, (_, sandbox) in enumerate(waiting)}
        pool._kinds[name] = _Stock(asked, deque(waiting))  # type: ignore[arg-type]
    assert [names[one] for one in pool._superfluous()] == ends
    assert pool._missing() == missing


@pytest.mark.parametrize("size", [1, 64])
def test_a_size_within_bounds_is_kept(size: int) -> None:
    Pooled(size).close()


@pytest.mark.parametrize("size", [0, -1, 65])
def test_a_size_out_of_bounds_is_refused(size: int) -> None:
    with pytest.raises(WorkError, match="is not valid"):
        Pooled(size)


def test_a_pool_has_the_identity_of_its_backend() -> None:
    with Pooled(1) as pool:
        own = Bubblewrap()
        assert (pool.name, pool.available(), pool.machine()) == (own.name, own.available(), own.machine())
