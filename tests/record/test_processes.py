"""What other processes, full disks, dying disks and `kill -9` do to the record."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.errors import RecordError
from engine.record.layout import DECISIONS, EVENTS, LOCK
from engine.record.storage import Storage
from engine.record.verify import verify
from tests.expect import refused
from tests.facilities import needs
from tests.processes import in_child, injecting, python, rest, said
from tests.record.samples import decision, numbers, open_log, write

WRITER = """
import resource, signal, sys
from pathlib import Path
from engine.errors import RecordError
from tests.record.samples import decision, event, open_log

state, first, count, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
log = open_log(state)
print("open", flush=True)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
for number in range(first, first + count):
    try:
        log.append(decision(number), (event(number),) * (number % 3))
    except RecordError as error:
        print(error.code, error.message, flush=True)
    else:
        print(number, flush=True)
"""


def test_a_second_engine_waits_and_then_refuses(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with python(WRITER, state, 1, 1, 0) as process:
        assert said(process) == "open"
        os.kill(process.pid, signal.SIGSTOP)  # holds the lock and does nothing
        with pytest.raises(RecordError) as caught:
            open_log(state, lock_seconds=0.2)
        assert caught.value.code == "engine.record_locked"
        assert "--state" in caught.value.remedy
        assert verify(state).writing
    with open_log(state) as log:  # the lock went with the process
        log.append(decision(7))
    assert verify(state).ok


def test_a_second_engine_gets_the_record_when_the_first_lets_go(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = open_log(state)
    first.append(decision(1))
    release = threading.Timer(0.2, first.close)
    release.start()
    with open_log(state, lock_seconds=30) as second:
        assert second.append(decision(2)) == 2
    release.join()
    assert verify(state).ok


def test_a_child_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    log = open_log(tmp_path / "state")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as child:
        log.close()
        open_log(tmp_path / "state", lock_seconds=5.0).close()  # the child lives longer than that
        child.communicate(b"\n")


@pytest.mark.full
def test_kill_at_any_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    state, acknowledged, cut = tmp_path / "state", [], 0
    chance = random.Random(11)  # noqa: S311 (when to kill is no secret)
    for round_ in range(12):
        with python(WRITER, state, round_ * 100_000, 1_000_000, 0) as process:
            told = [said(process) for _ in range(1 + chance.randrange(1, 120))]
            process.kill()
            told += rest(process)
        acknowledged += [int(number) for number in told[1:] if number.isdigit()]
        with open_log(state) as log:
            cut += len(log.opened.recovered)
        assert verify(state).ok
        assert set(acknowledged) <= set(numbers(state))
    assert len(acknowledged) > 100


@pytest.mark.parametrize("room", [200, 1200, 5000])
def test_a_full_disk_denies_and_nothing_acknowledged_is_lost(tmp_path: Path, room: int) -> None:
    """A limit on file size stands for a full disk: the kernel refuses the write the same way."""
    state = tmp_path / "state"
    write(state, 6)
    size = (state / DECISIONS).stat().st_size
    with python(WRITER, state, 100, 12, size + room) as process:
        told = process.communicate()[0].splitlines()[1:]
    done = [line for line in told if line.isdigit()]
    failed = [line for line in told if not line.isdigit()]
    assert failed
    assert failed[0].startswith("engine.record_unavailable the record cannot be written: ")
    assert all(line == "engine.record_unavailable the record is closed after a failure" for line in failed[1:])
    with open_log(state) as log:
        log.append(decision(999))
    assert verify(state).ok
    assert set(map(int, done)) <= set(numbers(state))


@pytest.mark.full(after=1)
@needs("strace")
@pytest.mark.parametrize(
    "fault",
    [
        "fdatasync:error=EIO:when=4",
        "write:error=ENOSPC:when=3",
        "write:error=EROFS:when=2",
        "write:retval=10:when=3",
        "fdatasync:signal=KILL:when=3",
        "write:signal=KILL:when=4",
    ],
)
@pytest.mark.parametrize("file", [DECISIONS, EVENTS])
def test_a_failing_system_call_denies_and_nothing_acknowledged_is_lost(tmp_path: Path, fault: str, file: str) -> None:
    state = tmp_path / "state"
    write(state, 3)
    with python(WRITER, state, 100, 9, 0, prefix=injecting(state / file, fault)) as process:
        told = process.communicate()[0].splitlines()[1:]
    done = [line for line in told if line.isdigit()]
    failed = [line for line in told if not line.isdigit()]
    assert 0 < len(done) < 9
    if "signal" not in fault:
        assert failed[0].startswith("engine.record_unavailable the record cannot be written: ")
        assert len(done) + len(failed) == 9
        assert told.index(failed[0]) == len(done)  # nothing is acknowledged after the first failure
    with open_log(state) as log:
        log.append(decision(999))
    assert verify(state).ok
    assert set(map(int, done)) <= set(numbers(state))


def test_a_forked_process_that_closes_its_copy_leaves_the_lock_to_its_parent(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.lock("lock", 0)

    def child() -> bool:
        storage.close()
        return Storage(tmp_path).locked("lock")

    assert in_child(child)
    assert Storage(tmp_path).locked("lock")
    storage.close()
    assert not Storage(tmp_path).locked("lock")


MANY_WRITERS = """
import asyncio, os, sys, threading
from pathlib import Path
from engine.errors import RecordError
from tests.record.samples import decision, event, open_log

log = open_log(Path(sys.argv[1]))

def told(text):
    os.write(1, text.encode() + b"\\n")

def thread(start):
    for number in range(start, start + 6):
        try:
            log.append(decision(number), (event(number),) * (number % 3))
        except RecordError as error:
            told(error.code)
        else:
            told(str(number))

async def task(start):
    for number in range(start, start + 6):
        try:
            await log.append_async(decision(number), (event(number),) * (number % 3))
        except RecordError as error:
            told(error.code)
        else:
            told(str(number))

async def tasks():
    await asyncio.gather(*(task(1000 + 100 * index) for index in range(4)))

threads = [threading.Thread(target=thread, args=(100 + 100 * index,)) for index in range(4)]
for one in threads:
    one.start()
asyncio.run(tasks())
for one in threads:
    one.join()
told("usable" if log.usable else "closed")
"""


@pytest.mark.full(after=1)
@needs("strace")
@pytest.mark.parametrize(
    "fault", ["fdatasync:error=EIO:when=2", "fdatasync:error=ENOSPC:when=2", "write:error=ENOSPC:when=2"]
)
@pytest.mark.parametrize("file", [DECISIONS, EVENTS])
def test_a_failing_system_call_denies_every_thread_and_task(tmp_path: Path, fault: str, file: str) -> None:
    state = tmp_path / "state"
    write(state, 3)
    with python(MANY_WRITERS, state, prefix=injecting(state / file, fault)) as process:
        told = process.communicate()[0].split()
    assert process.returncode == 0
    done = [line for line in told if line.isdigit()]
    failed = [line for line in told if line.startswith("engine.")]
    assert (len(done) + len(failed), told[-1]) == (48, "closed")
    assert set(failed) == {"engine.record_unavailable"}
    with open_log(state) as log:
        log.append(decision(9999))
    assert verify(state).ok
    there = numbers(state)
    assert set(map(int, done)) <= set(there)
    assert len(there) == len(set(there))


@needs("immutable_files")
def test_a_read_only_record_denies(tmp_path: Path) -> None:
    state = tmp_path / "state"
    write(state, 2)
    subprocess.run(["chattr", "+i", str(state / DECISIONS)], check=True)  # noqa: S607
    try:
        log = open_log(state)
        with refused(RecordError, "engine.record_unavailable"):
            log.append(decision(3))
        log.close()
    finally:
        subprocess.run(["chattr", "-i", str(state / DECISIONS)], check=True)  # noqa: S607
    assert json.loads((state / DECISIONS).read_bytes().splitlines()[-1])["seq"] == 2
    assert verify(state).ok


class Overtaken(Storage):
    """Another process removes the lock file between our opening it and locking it, once."""

    done = False

    def _open(self, path: str, flags: int) -> int:
        handle = super()._open(path, flags)
        if path == LOCK and not self.done:
            self.done = True
            (self._root / path).unlink()
        return handle


def test_a_lock_on_a_concurrently_removed_file_is_taken_again(tmp_path: Path) -> None:
    storage = Overtaken(tmp_path / "state")
    with open_log(storage) as log:
        assert storage.done
        assert storage.holds(LOCK)
        log.append(decision(1))
        with pytest.raises(RecordError, match="another engine"):
            open_log(tmp_path / "state", lock_seconds=0.0)
