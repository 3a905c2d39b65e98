"""`kill -9` at any moment while threads and an event loop append at once: nothing acknowledged is lost.

`ENGINE_KILL_ROUNDS=500 pytest tests/record/test_kill.py` runs as many rounds as wanted. Killing keeps the page
cache, so this finds torn writes and early answers, not missing syncs; test_crash_states.py finds those.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from engine.record.layout import segment_file, segment_numbers
from engine.record.verify import verify
from tests.processes import python, said, send_line
from tests.record.samples import open_log

ROUNDS = int(os.environ.get("ENGINE_KILL_ROUNDS", "30"))
FRESH = 50  # rounds on one record
SEGMENT = 100_000  # bytes; every round or two opens another

WRITERS = """
import asyncio, itertools, os, sys, threading
from pathlib import Path
from tests.record.samples import decision, event, open_log

def told(number):
    os.write(1, b"%d\\n" % number)

def write(state, first, early):
    log = open_log(Path(state), 5.0, segment_bytes=int(sys.argv[1]))
    numbers = itertools.count(first)

    def thread():
        for number in numbers:
            if early:
                told(number)
            log.append(decision(number), (event(number),) * (number % 3 == 0))
            told(number)

    async def task():
        for number in numbers:
            await log.append_async(decision(number), (event(number),) * (number % 5 == 0))
            told(number)

    async def tasks():
        await asyncio.gather(*(task() for _ in range(6)))

    for _ in range(3):
        threading.Thread(target=thread, daemon=True).start()
    asyncio.run(tasks())

for line in sys.stdin:
    state, first, early = line.rsplit(" ", 2)
    child = os.fork()
    if child == 0:
        write(state, int(first), int(early))
    os.write(1, b"pid %d\\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""


def nursery() -> AbstractContextManager[subprocess.Popen[str]]:
    """A process that has everything imported and forks a writer for each line it is sent."""
    return python(WRITERS, SEGMENT)


def killed(process: subprocess.Popen[str], state: Path, first: int, acks: int, *, early: bool = False) -> list[int]:
    """What a writer acknowledged that was killed after so many acknowledgements."""
    send_line(process, f"{state} {first} {int(early)}")
    told: list[int] = []
    pid = 0
    while (line := said(process)) != "dead":
        if line.startswith("pid "):
            pid = int(line[4:])
        else:
            told.append(int(line))
        if pid and len(told) >= acks:
            os.kill(pid, signal.SIGKILL)
            pid, acks = 0, sys.maxsize
    return told


def recorded(state: Path) -> list[int]:
    names = [path.name for path in (state / "records").iterdir()]
    data = b"".join((state / segment_file(number)).read_bytes() for number in segment_numbers(names))
    return [int(found, 16) for found in re.findall(rb'"decision_id":"([0-9a-f]{32})"', data)]


@pytest.mark.full
def test_kill_while_threads_and_tasks_append_loses_and_doubles_nothing(tmp_path: Path) -> None:
    chance = random.Random(23)  # noqa: S311 (when to kill is no secret)
    acknowledged: set[int] = set()
    cuts = segments = 0
    with nursery() as process:
        for round_ in range(ROUNDS):
            state = tmp_path / f"state-{round_ // FRESH}"
            if round_ % FRESH == 0:
                acknowledged = set()
            acknowledged |= set(killed(process, state, 1 + round_ * 100_000, chance.randrange(1, 150)))
            with open_log(state, 5.0, segment_bytes=SEGMENT) as log:
                cuts += len(log.opened.recovered)
            found = verify(state)
            assert found.ok, found.breaks
            there = recorded(state)
            assert len(there) == len(set(there))
            assert acknowledged <= set(there)
            segments = max(segments, found.segments)
    assert segments > 1
    print(f"{ROUNDS} rounds, at most {segments} segments, {cuts} torn tails cut")  # noqa: T201 (for -s)


def test_a_writer_that_acknowledges_early_is_found(tmp_path: Path) -> None:
    """Positive control: the same rounds find it within a few."""
    with nursery() as process:
        for round_ in range(60):
            state = tmp_path / f"state-{round_}"
            told = killed(process, state, 1, 3 + round_ % 7, early=True)
            if not set(told) <= set(recorded(state)):
                return
    pytest.fail("60 rounds did not find a writer that acknowledges before it writes")
