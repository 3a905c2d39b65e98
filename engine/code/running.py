"""The active runs of this process: their phases, cancellation and maximum number."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from engine.errors import EngineError, GatherError
from engine.model import Caller

Phase = Literal["plan", "policy_check", "execute"]


class EitherEvent(threading.Event):
    """Is set while one of these events is."""

    def __init__(self, *events: threading.Event) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        """Whether one of them is set."""
        return any(one.is_set() for one in self._events)


@dataclass(slots=True)
class Ticket:
    """One active run. Setting `cancel` kills its sandbox; the caller gets a result with that reason."""

    run_id: str
    cancel: threading.Event = field(default_factory=threading.Event)
    on_phase: Callable[[Phase], None] = lambda _: None
    on_output: Callable[[str, bytes], None] | None = None
    phase: Phase = "plan"

    def enter(self, phase: Phase) -> None:
        """Begin a phase and notify the watcher."""
        self.phase = phase
        self.on_phase(phase)


class Running:
    """Keeps the runs of each caller apart. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._tickets: dict[tuple[str, str, str], Ticket] = {}

    @contextmanager
    def slot(
        self,
        run_id: str,
        caller: Caller,
        cancel: threading.Event | None,
        on_phase: Callable[[Phase], None] | None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> Iterator[Ticket]:
        """Hold a slot. Raises EngineError `engine.overloaded`, or GatherError if a run with this id is active."""
        ticket = Ticket(run_id, cancel or threading.Event(), on_phase or (lambda _: None), on_output)
        key = _key(run_id, caller)
        with self._lock:
            if key in self._tickets:
                raise GatherError(
                    "a run with this id is in progress",
                    remedy="use a new id for a new run, or leave it out",
                    code="engine.run_pending",
                )
            if len(self._tickets) >= self._most:
                raise overloaded()
            self._tickets[key] = ticket
        try:
            yield ticket
        finally:
            with self._lock:
                self._tickets.pop(key, None)

    def find(self, run_id: str, caller: Caller) -> Ticket | None:
        """An active run of this caller; never of another one."""
        with self._lock:
            return self._tickets.get(_key(run_id, caller))


def overloaded() -> EngineError:
    """The error for a run beyond the maximum number."""
    return EngineError(
        "the maximum number of programs is already running", remedy="try again later", code="engine.overloaded"
    )


def _key(run_id: str, caller: Caller) -> tuple[str, str, str]:
    return caller.via.value, caller.principal or "", run_id
