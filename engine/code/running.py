"""The runs under way in this process: in which phase each is, how to cancel it, and how many there may be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from engine.errors import EngineError, GatherError
from engine.model import Caller

Phase = Literal["plan", "policy_check", "execute"]


@dataclass(slots=True)
class Ticket:
    """One run under way. Setting `cancel` kills its sandbox; whoever asked is told so."""

    run_id: str
    owner: tuple[str, str]
    cancel: threading.Event = field(default_factory=threading.Event)
    told: Callable[[Phase], None] = lambda _: None
    phase: Phase = "plan"

    def enter(self, phase: Phase) -> None:
        """A phase begins; whoever waits is told."""
        self.phase = phase
        self.told(phase)


class Running:
    """Keeps the runs of each caller apart. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._tickets: dict[tuple[str, str, str], Ticket] = {}

    def begin(
        self,
        run_id: str,
        caller: Caller,
        cancel: threading.Event | None = None,
        told: Callable[[Phase], None] | None = None,
    ) -> Ticket:
        """Take a place. Raises EngineError `engine.overloaded`, or GatherError where this id is under way."""
        ticket = Ticket(run_id, _owner(caller), cancel or threading.Event(), told or (lambda _: None))
        with self._lock:
            if (*ticket.owner, run_id) in self._tickets:
                raise GatherError(
                    "a run with this id is under way",
                    remedy="use a new id for a new run, or leave it out",
                    code="engine.run_pending",
                )
            if len(self._tickets) >= self._most:
                raise overloaded()
            self._tickets[*ticket.owner, run_id] = ticket
        return ticket

    def end(self, ticket: Ticket) -> None:
        """Give the place back."""
        with self._lock:
            self._tickets.pop((*ticket.owner, ticket.run_id), None)

    def find(self, run_id: str, caller: Caller) -> Ticket | None:
        """A run of this caller that is under way; of nobody else's."""
        with self._lock:
            return self._tickets.get((*_owner(caller), run_id))


def overloaded() -> EngineError:
    """The refusal of one run too many."""
    return EngineError(
        "as many programs run as this engine takes on at once", remedy="try again later", code="engine.overloaded"
    )


def _owner(caller: Caller) -> tuple[str, str]:
    return caller.via.value, caller.principal or ""
