"""WebAssembly: every single protection is worth something, for the probe sees that it is left out."""

from __future__ import annotations

import pytest

from admission_adapters.sandbox.probe.rows import Row
from admission_adapters.sandbox.wasm.probe import probe_wasmtime
from tests.facilities import needs

pytestmark = needs("wasmtime")

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
    """One probe of this machine, with its controls."""
    return probe_wasmtime()


@pytest.mark.full
def test_evidence_is_the_same_each_time(table: tuple[Row, ...]) -> None:
    assert [row.evidence for row in table] == [row.evidence for row in probe_wasmtime()]


@pytest.mark.full
@pytest.mark.parametrize("protection", SHOWS)
def test_an_omitted_protection_is_detected(protection: str, table: tuple[Row, ...]) -> None:
    controls = {act.name: act.outside for row in table for act in row.acts}
    rows = probe_wasmtime(frozenset({protection}), controls)

    assert SHOWS[protection] in {act.name for row in rows for act in row.red}
