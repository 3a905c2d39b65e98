"""The decision API on a loopback port, with default settings or with a record that never waits for the disk."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

from benchmarks.bare import post
from benchmarks.measure import Bench, NotMeasuredError
from benchmarks.processes import environment, free_port, named, serving
from benchmarks.workload import POINT, Workload

_READY_SECONDS = 60.0
_EVERY = ("--shared-answers", "0")
ENGINE, UNSYNCED = "engine", "benchmarks.unsynced"
"""The module to run: the product, or the same with a record that never waits for the disk."""


@dataclass(frozen=True, slots=True)
class ServedEngine:
    """A decision API that allows the workload."""

    port: int
    pid: int
    state: Path

    @property
    def url(self) -> str:
        """Where the workload is decided."""
        return f"http://127.0.0.1:{self.port}/v1/decide/{POINT}"

    @property
    def opa(self) -> int:
        """The process id of its OPA. Raises NotMeasuredError while there is none."""
        if (found := named(self.pid, "opa")) is None:
            raise NotMeasuredError("the engine has no OPA")
        return found


@contextmanager
def engine_served(
    bench: Bench, name: str, work: Workload, module: str = ENGINE, options: tuple[str, ...] = ()
) -> Iterator[ServedEngine]:
    """`engine serve` with a state of its own, ready; stopped when the block ends. It asks OPA about every request."""
    folder = bench.folder(name)
    port = free_port()
    state = folder / "state"
    command = [sys.executable, "-m", module, "serve", "--port", str(port), "--state", str(state), *_EVERY, *options]
    with serving(command, port, folder, environment(bench.scratch, bench.cache), bench.root) as process:
        served = ServedEngine(port, process.pid, state)
        await_allowed(served, work)
        yield served


def await_allowed(served: ServedEngine, work: Workload) -> None:
    """Wait until the engine allows the workload. Raises NotMeasuredError."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            found = json.loads(post(served.url, work.request_body))
        except URLError as error:
            found = str(error)
        else:
            if found.get("outcome") == "allow":
                return
        if time.monotonic() > deadline:
            raise NotMeasuredError(f"the engine does not allow the workload: {found}")
        time.sleep(0.02)
