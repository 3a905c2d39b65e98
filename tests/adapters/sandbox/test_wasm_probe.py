"""The probe of WebAssembly: every boundary is shown, and nothing is claimed without a positive control."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from admission_adapters.sandbox.model import RunResult, Status
from admission_adapters.sandbox.probe.canaries import Canaries
from admission_adapters.sandbox.probe.checks import SUPERVISED
from admission_adapters.sandbox.probe.rows import REQUESTED, Row
from admission_adapters.sandbox.wasm.probe import (
    _CAPPED,
    KERNEL,
    _code,
    _cut,
    _none,
    _Probe,
    _spun,
    probe_wasmtime,
)
from engine.errors import WorkError
from tests.facilities import needs


@pytest.fixture(scope="module")
def table() -> tuple[Row, ...]:
    """One probe of this machine."""
    return probe_wasmtime()


@pytest.mark.full
@needs("wasmtime")
def test_every_boundary_of_this_machine_is_proven(table: tuple[Row, ...]) -> None:
    assert [row.boundary for row in table] == list(REQUESTED)
    assert {row.boundary: [act.name for act in row.red] for row in table if not row.enforced} == {}


@pytest.mark.full
@needs("wasmtime")
def test_without_a_control_only_kernel_reported_evidence_counts() -> None:
    found = probe_wasmtime(known={})

    assert {act.outside for row in found for act in row.acts} == {"missing"}
    told = {name for name, checks in {**KERNEL, **SUPERVISED}.items() if not any(check.harm for check in checks)}
    assert {row.boundary for row in found if row.enforced} == told


@pytest.mark.full
@needs("wasmtime", "network_namespace")
def test_the_control_creates_a_namespace_if_the_machine_allows_it(table: tuple[Row, ...]) -> None:
    assert {act.outside for row in table for act in row.acts if act.name == "namespace_made"} == {"did"}


def test_a_runtime_import_failure_is_reported_with_its_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wasmtime").mkdir()
    broken = tmp_path / "wasmtime" / "__init__.py"
    broken.write_text("raise ImportError('it is for another machine')", encoding="utf-8")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None, origin=str(broken)))

    with pytest.raises(WorkError, match=r"no module runs in the sandbox: .*it is for another machine"):
        probe_wasmtime()
    probe = _Probe(Canaries(None), frozenset())
    probe._work()
    assert probe.trial.inside == {"echo": "failed:sandbox_error", "variable": "failed:sandbox_error"}


def end(status: Status, stdout: bytes = b"", *, code: int | None = None, cpu: float | None = None) -> RunResult:
    return RunResult(status, code, None, 1.0, cpu, stdout, b"", len(stdout), 0)


FULL = b"x" * _CAPPED.stdout_bytes


@pytest.mark.parametrize(
    ("worded", "ended", "word"),
    [
        (_code, end(Status.OK, code=0), "did"),
        (_code, end(Status.RUNTIME_ERROR, code=48), "refused:48"),
        (_none, end(Status.OK), "none"),
        (_none, end(Status.OK, b"GIVEN=1"), "failed:ok"),
        (_none, end(Status.SIGNAL), "failed:signal"),
        (partial(_cut, stream="stdout"), end(Status.OK, FULL), "did"),
        (partial(_cut, stream="stdout"), end(Status.OUTPUT_LIMIT, FULL), "output_limit"),
        (partial(_cut, stream="stdout"), end(Status.OUTPUT_LIMIT, FULL[1:]), "failed:cut"),
        (partial(_cut, stream="stderr"), end(Status.OUTPUT_LIMIT, FULL), "failed:cut"),
        (_spun, end(Status.OK, cpu=1.1), "did"),
        (_spun, end(Status.OK, cpu=1.0), "failed:ok"),
        (_spun, end(Status.SANDBOX_ERROR), "failed:sandbox_error"),
    ],
)
def test_each_end_of_a_module_is_classified(worded: Callable[[RunResult], str], ended: RunResult, word: str) -> None:
    assert worded(ended) == word
