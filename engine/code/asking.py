"""The decisions of one run: each is made and recorded separately; the result lists all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from admission_adapters.files.artifact_store import ArtifactStore
from admission_adapters.sandbox.model import Backend
from admission_adapters.sandbox.packages import Packages
from engine.code.running import Running, Ticket
from engine.drive import Steps
from engine.flow import Answer, Context, Services, answer
from engine.model import Mode
from engine.points.registry import find
from engine.work import Executor


@dataclass(frozen=True, slots=True)
class Machine:
    """What a run uses of this machine: sandboxes and packages by name, the store, the active runs, the clock."""

    backend: Callable[[str], Backend]
    store: ArtifactStore
    running: Running
    packages: Callable[[str], Packages | None] = lambda _: None
    monotonic: Callable[[], float] = time.monotonic


class Asking:
    """Requests the decisions of one run, which begins now. `approvals` are ids by the name of their decision."""

    def __init__(
        self, services: Services, machine: Machine, context: Context, ticket: Ticket, approvals: Mapping[str, str]
    ) -> None:
        """Without a request id of the caller, the id of the run links its lines."""
        request_id = context.request_id or ticket.run_id
        self.services = services
        self.machine = machine
        self.context = replace(context, approval=None, idempotency_key=None, request_id=request_id)
        self.ticket = ticket
        self.decided: dict[str, str] = {}
        """The id of each decision, by its name, in their order."""
        self.last: Answer | None = None
        self._approvals = approvals
        self._started = machine.monotonic()

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the run began."""
        return int((self.machine.monotonic() - self._started) * 1_000)

    def ask(self, name: str, point: str, request: Any, executor: Executor | None = None) -> Steps[Answer]:
        """Request one enforced decision under its own name, and do its work on an allow."""
        context = replace(self.context, approval=self._approvals.get(name))
        answered = yield from answer(find(point), request, Mode.ENFORCE, self.services, context, executor)
        self.decided[name] = answered.decision.decision_id
        self.last = answered
        return answered
