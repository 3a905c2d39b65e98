"""The decisions of one run: each is asked and recorded by itself, and all are told together."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.artifact_store import ArtifactStore
from adapters.sandbox.model import Backend
from engine.code.running import Running
from engine.drive import Steps
from engine.flow import Answer, Context, Parts, answer
from engine.model import Mode
from engine.points.registry import find
from engine.work import Hand


@dataclass(frozen=True, slots=True)
class Machine:
    """What a run needs of this machine: sandboxes by name, the artifact store, the runs under way, clock and ids."""

    backend: Callable[[str], Backend]
    store: ArtifactStore
    running: Running
    monotonic: Callable[[], float] = time.monotonic
    new_run: Callable[[], str] = lambda: str(uuid.uuid4())


@dataclass(slots=True)
class Asking:
    """Asks the decisions of one run. `approvals` are ids by the name of the decision that they are for."""

    parts: Parts
    machine: Machine
    context: Context
    run_id: str
    approvals: Mapping[str, str]
    cancel: threading.Event
    started: float = 0.0
    decided: dict[str, str] = field(default_factory=dict)
    """The id of each decision, by its name, in their order."""
    last: Answer | None = None

    @classmethod
    def of(
        cls,
        parts: Parts,
        machine: Machine,
        context: Context,
        run_id: str,
        approvals: Mapping[str, str],
        cancel: threading.Event,
    ) -> Asking:
        """The run begins now. Where nobody stated a request id, that of the run ties its lines together."""
        own = replace(context, approval=None, idempotency_key=None, request_id=context.request_id or run_id)
        return cls(parts, machine, own, run_id, approvals, cancel, machine.monotonic())

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the run began."""
        return int((self.machine.monotonic() - self.started) * 1_000)

    def ask(self, name: str, point: str, request: Any, hand: Hand | None = None) -> Steps[Answer]:
        """One enforced decision under its own name, and the work of its allow."""
        context = replace(self.context, approval=self.approvals.get(name))
        answered = yield from answer(find(point), request, Mode.ENFORCE, self.parts, context, hand)
        self.decided[name] = answered.decision.decision_id
        self.last = answered
        return answered
