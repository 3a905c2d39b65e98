"""The backends that can run generated code, and how each is tried: one entry each (A94).

A backend without a probe claims nothing: whatever is not registered here is nothing that a policy can admit.
A plain subprocess is no backend. It is a separate subprocess boundary (best-effort, not a security sandbox),
and serves as the positive control of probes only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.model import Backend
from adapters.sandbox.probe import Row, probe_bubblewrap


@dataclass(frozen=True, slots=True)
class Registered:
    """A backend, and its probe: a row for each boundary, tried by the launcher of real runs.

    The probe raises OSError or WorkError when it cannot be made at all.
    """

    backend: Backend
    probe: Callable[[], tuple[Row, ...]]


def registered() -> Mapping[str, Registered]:
    """Every backend by its name."""
    entries = [Registered(Bubblewrap(), probe_bubblewrap)]
    return {entry.backend.name: entry for entry in entries}
