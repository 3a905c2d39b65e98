"""A sandbox that runs nothing, and what a machine is shown to hold that holds everything."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from engine.facts.code.boundaries import BOUNDARIES
from engine.model import Boundary, Probe, SandboxFacts

MACHINE = "sha256:" + "1" * 64
EVIDENCE = "sha256:" + "e" * 64


@dataclass
class Recorder:
    """A backend that only writes down what it was told to run."""

    name: str = "bubblewrap"
    lacking: str | None = None
    ran: list[tuple[Program, Bounds]] = field(default_factory=list)

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> RunResult:
        assert cancel is None or not cancel.is_set()
        self.ran.append((program, bounds))
        return RunResult(Status.OK, 0, None, 0.0256, None, b"1\n", b"", 2, 0)

    def available(self) -> str | None:
        return self.lacking

    def machine(self) -> str:
        return MACHINE


def shown(boundary: str | None = None, *, of_probe: dict[str, Any] | None = None, **changes: Any) -> SandboxFacts:
    """Everything is held, but for these changes to a boundary or to the probe."""
    held = [
        Boundary(backend="bubblewrap", boundary=one, kind="kernel", enforced=True, evidence=EVIDENCE)
        for one in BOUNDARIES
    ]
    boundaries = [one.model_copy(update=changes) if one.boundary == boundary else one for one in held]
    probe = Probe(id="bubblewrap", subject=MACHINE, machine=MACHINE, probed_at=1, authentic=True)
    return SandboxFacts(tuple(boundaries), (probe.model_copy(update=of_probe),))
