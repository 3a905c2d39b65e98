"""Everything that answers the workload over HTTP, started as it is measured: the engine and its peers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.error import URLError

from benchmarks.bare import Bare, post, with_default_settings, with_settings_of_the_engine
from benchmarks.measure import Bench, NotMeasuredError
from benchmarks.processes import environment, free_port, serving
from benchmarks.served import Served
from benchmarks.served_engine import ENGINE, UNSYNCED, engine_served
from benchmarks.workload import Workload


class Kind(StrEnum):
    """What can be asked."""

    RAW = "raw OPA"  # started as the engine starts its own, asked what the engine asks
    DEFAULT = "default opa run"  # without any setting, asked for the bare decision
    WRITTEN = "engine, record written"  # and not waited for; OPA is asked about every request
    DURABLE = "engine, record on disk"  # the product, but for that
    SHARED = "engine, equal cases once"  # the product, asked about the same case again and again
    FORWARDER = "forwarding alone"  # what Python leaves before anything is checked or recorded
    RECORDER = "forwarding, record written"  # with a digest, a search for secrets and a chained line
    DURABLE_RECORDER = "forwarding, record on disk"
    RECALLER = "record on disk alone"  # OPA is asked about the case once
    FASTAPI = "FastAPI + opa-python-client"  # what one would write in an afternoon; records nothing


_FORWARDERS: Mapping[Kind, tuple[str, ...]] = {
    Kind.FORWARDER: (),
    Kind.RECORDER: ("BENCH_RECORD",),
    Kind.DURABLE_RECORDER: ("BENCH_RECORD", "BENCH_SYNC"),
    Kind.RECALLER: ("BENCH_RECORD", "BENCH_SYNC", "BENCH_ONCE"),
}
"""The variables that each has set."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that answers `body` at `url`, and the processes whose CPU time that takes."""

    url: str
    body: Path
    pids: tuple[int, ...]


@contextmanager
def started(bench: Bench, name: str, work: Workload, kinds: Collection[Kind]) -> Iterator[dict[Kind, Target]]:
    """These kinds, running side by side and shown to allow the workload before and after the block.

    `name` is a folder below the scratch folder. Raises NotMeasuredError.
    """
    folder = bench.folder(name)
    files = {
        "request": work.request_body,
        "input": work.input_body,
        "document": json.dumps(work.document).encode(),
    }
    for file, body in files.items():
        (folder / file).write_bytes(body)
    with ExitStack() as stack:
        starting = _Starting(bench, name, work, stack)
        targets = {kind: starting.start(kind) for kind in Kind if kind in kinds}
        _demand_allowed(targets)
        yield targets
        _demand_allowed(targets)


@dataclass(frozen=True, slots=True)
class _Starting:
    bench: Bench
    name: str
    work: Workload
    stack: ExitStack

    def start(self, kind: Kind) -> Target:
        self.bench.report(f"starting {kind}")
        if kind is Kind.RAW:
            raw = self._bare(with_settings_of_the_engine, "raw")
            return self._target(raw.asked, "input", raw.pid)
        if kind is Kind.DEFAULT:
            default = self._bare(with_default_settings, "default")
            return self._target(default.plain, "input", default.pid)
        if kind is Kind.FASTAPI:
            behind = self._bare(with_settings_of_the_engine, "behind")
            return self._application(behind)
        if kind in _FORWARDERS:
            return self._forwarder(kind)
        module = UNSYNCED if kind is Kind.WRITTEN else ENGINE
        name = f"{self.name}/{kind.name.lower()}"
        options = ("--shared-answers", "8192") if kind is Kind.SHARED else ()
        served = self.stack.enter_context(engine_served(self.bench, name, self.work, module, options))
        return self._target(served.url, "request", served.pid)

    def _bare(self, start: Callable[[Bench, str], AbstractContextManager[Bare]], name: str) -> Bare:
        return self.stack.enter_context(start(self.bench, f"{self.name}/{name}"))

    def _application(self, behind: Bare) -> Target:
        """The FastAPI application on uvicorn, in one process as the engine is."""
        port = free_port()
        folder = self.bench.folder(f"{self.name}/fastapi")
        command = [sys.executable, "-m", "uvicorn", "benchmarks.fastapi_peer:app", "--port", str(port)]
        command += ["--log-level", "warning", "--no-access-log"]
        own = {"BENCH_OPA_PORT": str(behind.port), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        surroundings = environment(self.bench.scratch) | own
        process = self.stack.enter_context(serving(command, port, folder, surroundings, self.bench.root))
        return self._target(f"http://127.0.0.1:{port}/decide", "document", process.pid, behind.pid)

    def _forwarder(self, kind: Kind) -> Target:
        """The bare way to an OPA on a unix socket and back."""
        port = free_port()
        folder = self.bench.folder(f"{self.name}/{kind.name.lower()}")
        opa = self.stack.enter_context(Served(self.bench.binary.path, self.bench.archives, folder))
        own = {"BENCH_OPA_SOCKET": str(folder / "opa.sock"), "BENCH_PORT": str(port)}
        own |= {name: str(folder / "record") for name in _FORWARDERS[kind]}
        surroundings = environment(self.bench.scratch, self.bench.cache) | own
        command = [sys.executable, "-m", "benchmarks.forwarder"]
        process = self.stack.enter_context(serving(command, port, folder, surroundings, self.bench.root))
        return self._target(f"http://127.0.0.1:{port}/", "document", process.pid, opa.process.pid)

    def _target(self, url: str, body: str, *pids: int) -> Target:
        return Target(url, self.bench.scratch / self.name / body, pids)


def _demand_allowed(targets: dict[Kind, Target]) -> None:
    for kind, target in targets.items():
        try:
            answer = json.loads(post(target.url, target.body.read_bytes()))
        except URLError as error:
            raise NotMeasuredError(f"{kind} does not answer: {error}") from error
        if answer.get("result", answer).get("outcome") != "allow":
            raise NotMeasuredError(f"{kind} does not allow the workload: {answer}")
