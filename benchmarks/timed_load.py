"""Load whose every answer is known with its times, from a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Bench, NotMeasuredError
from benchmarks.processes import environment

_STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. Times are seconds of the monotonic clock; status 0 is a connection that gave none."""

    sent: float
    received: float
    status: int
    outcome: str | None
    rules: str | None
    values: str | None
    codes: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.received - self.sent


@dataclass(slots=True)
class TimedLoad:
    """Load that is in progress; `stop` ends it and gives every answer in the order they came."""

    process: subprocess.Popen[bytes]

    def stop(self) -> list[Answer]:
        """Raises NotMeasuredError when the generator failed."""
        printed, _ = self.process.communicate(timeout=_STOP_SECONDS)
        if self.process.returncode:
            raise NotMeasuredError(f"the load generator ended with {self.process.returncode}")
        lines = [json.loads(line) for line in printed.splitlines()]
        return [Answer(**{**line, "codes": tuple(line["codes"])}) for line in lines]


@contextmanager
def asking(bench: Bench, url: str, body: Path, connections: int) -> Iterator[TimedLoad]:
    """Ask over so many connections without pause; every one of them was answered when the block begins."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.generator", url, str(body), str(connections)],
        cwd=bench.root,
        env=environment(bench.scratch, bench.cache),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        if process.stdout is None or process.stdout.readline() != b"running\n":
            raise NotMeasuredError(f"the load generator cannot ask {url}")
        yield TimedLoad(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
