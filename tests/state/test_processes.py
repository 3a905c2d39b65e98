"""What `kill -9`, full disks and failing system calls do to the state: what was told stands, or nothing was told."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from engine.state.rows import Counter
from engine.state.store import Store
from tests.expect import there
from tests.facilities import needs
from tests.processes import injecting, python, rest, said
from tests.state.samples import NOW, SECONDS, asked, opened

EVER = Counter("writes", "", 0)

WRITER = """
import resource, sys
from pathlib import Path
from engine.errors import StateError
from engine.state.rows import Counter, StateLimits
from tests.state.samples import NOW, asked, opened

first, count, room = map(int, sys.argv[2:5])
with opened(Path(sys.argv[1]), StateLimits()) as store:
    print("open", flush=True)
    if room:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    for number in range(first, first + count):
        name = str(number)
        try:
            store.reserve(name, (Counter("writes", "", 0),), NOW)
            print("reserved", name, flush=True)
            row = store.request_approval(asked(requester=name))
            store.resolve(row.id, "granted", "user:lee", None, NOW)
            print("granted", row.id, flush=True)
            store.claim(row.id, name, asked(requester=name), NOW)
            print("used", row.id, flush=True)
            store.begin("scope", name, "body", NOW)
            print("begun", name, flush=True)
            store.finish("scope", name, "answer", "r", "v")
            print("done", name, flush=True)
        except StateError as error:
            print("failed", error.code, error.message, flush=True)
"""


def hold_what_was_told(store: Store, told: list[str]) -> None:
    """Everything acknowledged is there, and nothing is counted less than that."""
    words = [line.split() for line in told if " " in line]
    reserved = {name for what, name, *_ in words if what == "reserved"}
    assert store.used(EVER, NOW) >= len(reserved)
    for what, name, *_ in words:
        if what == "reserved":
            assert store.reserve(name, (EVER,), NOW)[0] < store.used(EVER, NOW)
        elif what in {"granted", "used"}:
            row = there(store.approval(name))
            assert row.state == "used" or what == "granted"
        elif what in {"begun", "done"}:
            begun = store.begin("scope", name, "body", NOW)
            assert begun.kind == "done" or (what == "begun" and begun.kind == "pending")
    assert store.used(EVER, NOW) <= len(reserved) + sum(line == "open" for line in told)  # one in flight a process


def test_kill_at_any_moment_loses_no_acknowledged_write(tmp_path: Path, *, full: bool) -> None:
    state, told = tmp_path / "state", []
    chance = random.Random(11)  # noqa: S311 (when to kill is no secret)
    rounds = 12 if full else 2
    for round_ in range(rounds):
        with python(WRITER, state, round_ * 100_000, 1_000_000, 0) as process:
            heard = [said(process) for _ in range(1 + chance.randrange(1, 150))]
            process.kill()
            heard += rest(process)
        assert "open" in heard
        told += heard
        with opened(state) as store:
            hold_what_was_told(store, told)
    assert len(told) > 25 * rounds


@pytest.mark.full(after=1)
@pytest.mark.parametrize("room", [8_000, 40_000, 150_000])
def test_a_full_disk_denies_and_loses_no_acknowledged_write(tmp_path: Path, room: int) -> None:
    """A limit on file size stands for a full disk: the kernel refuses the write the same way."""
    state = tmp_path / "state"
    with opened(state) as store:
        store.request_approval(asked())
    with python(WRITER, state, 0, 60, room) as process:
        told = process.communicate(timeout=SECONDS)[0].splitlines()
    failed = [line for line in told if line.startswith("failed")]
    assert failed
    assert set(failed) == {"failed engine.state_unavailable the state cannot be used: the disk failed or is full"}
    first = told.index(failed[0])
    assert told[first:] == failed  # after a failed write nothing more is tried
    with opened(state) as store:
        hold_what_was_told(store, told[:first])
        assert store.writable()


@pytest.mark.full(after=1)
@needs("strace")
@pytest.mark.parametrize(
    "fault",
    [
        "fsync,fdatasync:error=EIO:when=4",
        "pwrite64:error=ENOSPC:when=9",
        "pwrite64:error=EROFS:when=12",
        "fsync,fdatasync:signal=KILL:when=5",
        "pwrite64:signal=KILL:when=40",
    ],
)
def test_a_failing_system_call_denies_and_loses_no_acknowledged_write(tmp_path: Path, fault: str) -> None:
    state = tmp_path / "state"
    with opened(state) as store:
        store.request_approval(asked())
    strace = injecting(state / "state.sqlite3-wal", fault)
    with python(WRITER, state, 0, 20, 0, prefix=strace) as process:
        told = process.communicate(timeout=SECONDS)[0].splitlines()
    good = [line for line in told if not line.startswith("failed")]
    assert 1 < len(good) < 1 + 20 * 5
    if "signal" not in fault:
        assert any(line.startswith("failed engine.state_unavailable") for line in told)
    if "EIO" in fault:
        assert told[: len(good)] == good  # a failed sync is final
    with opened(state) as store:
        hold_what_was_told(store, good)
        assert store.writable()
