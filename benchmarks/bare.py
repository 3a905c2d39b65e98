"""A bare OPA on a loopback port, which is what the engine is measured against.

It serves the engine's own archives, started as the engine starts its own, or with OPA's defaults.
"""

from __future__ import annotations

import shutil
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

from benchmarks.measure import Bench, NotMeasuredError
from benchmarks.processes import environment, free_port, serving
from engine.documents.canonical import canonical
from engine.opa.reply import RULES, VALUES
from engine.settings import OpaLimits

_PARAMETERS = "provenance=true&strict-builtin-errors=true"
"""What the engine asks with."""
_READY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Bare:
    """A bare OPA that is ready: `asked` is where the engine would ask, `plain` the same without parameters."""

    port: int
    pid: int

    @property
    def plain(self) -> str:
        """The decision, asked for as simply as possible."""
        return f"http://127.0.0.1:{self.port}/v1/data/admission/decision"

    @property
    def asked(self) -> str:
        """The decision with the provenance that the engine demands."""
        return f"{self.plain}?{_PARAMETERS}"


@contextmanager
def with_settings_of_the_engine(bench: Bench, name: str) -> Iterator[Bare]:
    """OPA with the launch settings of engine/opa/server.py, but for the unix socket."""
    length = f"server.decoding.max_length={OpaLimits().input_bytes}"
    options = ("--log-level", "error", "--skip-version-check", "--set", length)
    with _started(bench, name, options, {"GOGC": "400"}) as bare:
        yield bare


@contextmanager
def with_default_settings(bench: Bench, name: str) -> Iterator[Bare]:
    """`opa run --server` without any setting; only its log of every request is off, which would flatter us."""
    with _started(bench, name, ("--log-level", "error"), environment(bench.scratch, bench.cache)) as bare:
        yield bare


@contextmanager
def _started(bench: Bench, name: str, options: tuple[str, ...], surroundings: dict[str, str]) -> Iterator[Bare]:
    folder = bench.folder(name)
    for source, target in zip(bench.archives, (RULES, VALUES), strict=True):
        shutil.copyfile(source, folder / target)
    port = free_port()
    command = [str(bench.binary.path), "run", "--server", "--addr", f"127.0.0.1:{port}", "-b", RULES, "-b", VALUES]
    with serving([*command, *options], port, folder, surroundings, root=folder) as process:
        bare = Bare(port, process.pid)
        _await_policy(bare, folder)
        yield bare


def _await_policy(bare: Bare, folder: Path) -> None:
    """OPA listens a little before it has its bundles."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            if b'"outcome"' in post(bare.plain, canonical({"input": {"point": ""}})):
                return
        except URLError:
            pass
        if time.monotonic() > deadline:
            raise NotMeasuredError(f"the bare OPA in {folder} does not decide")
        time.sleep(0.01)


def post(url: str, body: bytes, seconds: float = 20.0) -> bytes:
    """One POST of JSON past every proxy; the body of the answer. Raises URLError on anything but 2xx."""
    asked = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310  (our own URL)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=seconds) as answer:
        found: bytes = answer.read()
        return found
