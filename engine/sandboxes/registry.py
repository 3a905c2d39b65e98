"""The registry of sandbox backends and their probes: one entry each (A94).

A backend without a probe claims nothing: a policy cannot admit a backend that is not registered here.
A plain subprocess is not a backend. It is a separate subprocess boundary (best-effort, not a security sandbox),
and serves as the positive control of probes only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap, BubblewrapEgress
from admission_adapters.sandbox.bubblewrap.probe import probe_bubblewrap
from admission_adapters.sandbox.gvisor.backend import Gvisor
from admission_adapters.sandbox.gvisor.probe import probe_gvisor
from admission_adapters.sandbox.model import Backend
from admission_adapters.sandbox.probe.rows import Row
from admission_adapters.sandbox.run.pool import Pooled
from admission_adapters.sandbox.wasm.backend import Wasmtime
from admission_adapters.sandbox.wasm.probe import probe_wasmtime
from engine.settings import Settings


@dataclass(frozen=True, slots=True)
class Registered:
    """A backend, and its probe: a row for each boundary, tried by the launcher of real runs.

    The probe raises OSError or WorkError when it cannot be made at all.
    """

    backend: Backend
    probe: Callable[[], tuple[Row, ...]]
    close: Callable[[], None] = lambda: None
    """End all sandboxes that the backend keeps ready."""


def registered(cache: Path | None = None, warm: int = 0) -> Mapping[str, Registered]:
    """Every backend by its name, the baseline first. Binaries built on request are in `cache`, else in the user's.

    Of the baseline, `warm` sandboxes wait for programs like the last ones.
    """
    binaries = (Settings().cache if cache is None else cache) / "sandbox"
    baseline = Registered(Bubblewrap(), probe_bubblewrap)
    if warm:
        pool = Pooled(warm)
        baseline = Registered(pool, probe_bubblewrap, pool.close)
    entries = [
        baseline,
        Registered(BubblewrapEgress(), partial(probe_bubblewrap, recipe=BubblewrapEgress())),
        Registered(Gvisor(binaries), partial(probe_gvisor, binaries)),
        Registered(Wasmtime(), probe_wasmtime),
    ]
    return {entry.backend.name: entry for entry in entries}
