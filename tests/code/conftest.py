"""What the tests of the code gateway share: an engine on the real sandbox, and the seed's run with changes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine import CodeRun, Context, Engine, Settings
from engine.model import Caller, Via
from tests.command import lines
from tests.conftest import ROOT, take_over
from tests.expect import there

GOLDEN: dict[str, Any] = json.loads((ROOT / "fixtures/code/incident_metrics.json").read_text(encoding="utf-8"))
LONGEST = {"exec_timeout_seconds": 20.0}
CODE: str = GOLDEN["action"]["code"]
PIPELINE = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"))


def golden(code: str | None = None, *, action: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The seed's run with other code, action fields and own fields, and the longest time that policy allows."""
    document = {**copy.deepcopy(GOLDEN), "policy_hints": {**GOLDEN["policy_hints"], **LONGEST}, **changes}
    document["policy_hints"] = {**LONGEST, **document["policy_hints"]}
    document["action"] = {**document["action"], **({} if code is None else {"code": code}), **(action or {})}
    return document


def printing(**changes: Any) -> str:
    """Code that prints the seed's output with other values, as a literal text."""
    output = {
        "failed_payment_rate": 0.03,
        "chargeback_alerts": 1,
        "incident_severity": "P1",
        "eta_minutes": 45,
        "affected_checkout_share": 0.03,
        "avg_latency_ms": 167.0,
        "p95_latency_ms": 187.0,
        "sample_size": 60,
        "incident_id": "inc_payments_20260307",
        "region": "US",
    }
    return f"print({json.dumps(json.dumps({**output, **changes}))})"


@dataclass(frozen=True, slots=True)
class Bench:
    """An open engine and its state."""

    engine: Engine
    state: Path

    def run(self, document: Any, context: Context = PIPELINE, **more: Any) -> CodeRun:
        return self.engine.run_code(document, context, **more)

    def recorded(self, done: CodeRun) -> list[dict[str, Any]]:
        """The lines of the record of one run, in their order."""
        own = done.document["run_id"]
        return [line for line in lines(self.state) if line.get("request_id") == own]

    def kept(self, digest: str) -> bytes:
        return there(self.engine.executors.machine().store.get(digest))


@contextmanager
def opened(probed: Path, state: Path, cache: Path, **how: Any) -> Iterator[Bench]:
    """An engine with a state of its own, which knows already what the sandbox holds."""
    take_over(probed, state)
    limits = {name: how.pop(name) for name in ("code_runs", "code_waiting") if name in how}
    with Engine(Settings(state=state, cache=cache, **limits), **how) as engine:
        yield Bench(engine, state)


@pytest.fixture(scope="session")
def bench(probed: Path, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Bench]:
    """One engine for everything that leaves it as it was."""
    with opened(probed, tmp_path_factory.mktemp("bench") / "state", cache) as found:
        yield found


@pytest.fixture
def opening(probed: Path, tmp_path: Path, cache: Path) -> Callable[..., Any]:
    """What opens an engine of one's own, with the options that it is given."""

    def open_(name: str = "state", **how: Any) -> Any:
        return opened(probed, tmp_path / name, cache, **how)

    return open_


_BUILTINS = "Exception, ValueError, bytes, chr, dict, float, input, int, len, print, range, round, sorted, str, sum"
_OS = "O_CREAT, O_WRONLY, _exit, close, environ, getcwd, getpid, listdir, mkdir, open, path, write"
WIDER = (
    f"code.scan.python.builtins=[{_BUILTINS}]",
    f"code.scan.python.modules.os=[{_OS}]",
    "code.scan.python.modules.time=[sleep]",
    "code.scan.python.denied_names=[builtins]",
)
"""A policy whose scan lets a program look around, so that the sandbox alone is what keeps it in."""


@pytest.fixture(scope="session")
def wider(probed: Path, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Bench]:
    with opened(probed, tmp_path_factory.mktemp("wider") / "state", cache, values=WIDER) as found:
        yield found
