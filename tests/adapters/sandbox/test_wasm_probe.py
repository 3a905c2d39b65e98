"""The probe of WebAssembly: every boundary is shown, and every protection that is left out shows."""

from __future__ import annotations

import pytest

from adapters.sandbox.probe import REQUESTED, Row
from adapters.sandbox.wasm_probe import probe_wasmtime
from tests.facilities import needs

SHOWS = {
    "seccomp": "call_personality",
    "namespaces": "namespace_net",
    "new_session": "outside_session",
    "rlimit_nofile": "files_opened",
    "rlimit_cpu": "cpu_kernel",
    "rlimit_as": "memory",
    "limiter": "wasi_memory",
    "clearenv": "secret_variable",
    "output_cap": "stdout",
    "wall_clock": "sleep",
}
"""A protection that is left out, and an act that shows it."""


@pytest.fixture(scope="module")
def table() -> tuple[Row, ...]:
    """One probe of this machine."""
    return probe_wasmtime()


@needs("wasmtime")
def test_every_boundary_of_this_machine_is_shown(table: tuple[Row, ...]) -> None:
    assert [row.boundary for row in table] == list(REQUESTED)
    assert {row.boundary: [act.name for act in row.red] for row in table if not row.enforced} == {}


@needs("wasmtime")
@pytest.mark.slow
def test_evidence_is_the_same_each_time(table: tuple[Row, ...]) -> None:
    assert [row.evidence for row in table] == [row.evidence for row in probe_wasmtime()]


@needs("wasmtime")
@pytest.mark.slow
@pytest.mark.parametrize("protection", SHOWS)
def test_every_protection_is_worth_something(protection: str, table: tuple[Row, ...]) -> None:
    controls = {act.name: act.outside for row in table for act in row.acts}
    rows = probe_wasmtime(frozenset({protection}), controls)

    assert SHOWS[protection] in {act.name for row in rows for act in row.red}
