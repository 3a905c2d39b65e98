"""The runs of this process: their phases, cancellation, how many there are at once, and those that wait."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from engine.errors import EngineError, GatherError
from engine.model import Caller, Via

Phase = Literal["plan", "policy_check", "execute"]

_LOOK_SECONDS = 0.1
"""Between two looks at whether a run that waits was cancelled."""


class EitherEvent(threading.Event):
    """Is set while one of these events is."""

    def __init__(self, *events: threading.Event) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        """Whether one of them is set."""
        return any(one.is_set() for one in self._events)


@dataclass(frozen=True, slots=True)
class RunWatcher:
    """Controls a run from outside: setting `cancel` ends it, `on_phase` is called as each phase begins.

    `on_output` gets the name of a stream and its next bytes while the program runs, where the policy lets output be
    shown before it is decided on. It is called on the thread that enforces the limits. `on_place` gets the place of a
    run that waits for others, from 1, each time it changes; it is called on threads of others. Neither may block.
    """

    cancel: threading.Event = field(default_factory=threading.Event)
    on_phase: Callable[[Phase], None] = lambda _: None
    on_output: Callable[[str, bytes], None] | None = None
    on_place: Callable[[int], None] = lambda _: None


@dataclass(slots=True)
class Ticket:
    """One run. Setting `cancel` of its watcher kills its sandbox; the caller gets a result with that reason.

    `place` counts the runs that begin before it, and itself; 0 once it has begun.
    """

    run_id: str
    caller: Caller
    watch: RunWatcher
    started_at: int
    phase: Phase = "plan"
    place: int = 0

    def enter(self, phase: Phase) -> None:
        """Begin a phase and notify the watcher."""
        self.phase = phase
        self.watch.on_phase(phase)

    @property
    def owner(self) -> str:
        """Whose run it is."""
        return owner_of(self.caller)


class Running:
    """Keeps the runs of each caller apart, lets so many run, and lets others wait for their turn. Threads may share it.

    Callers take turns, and one alone gets at most half of both: there is room for the next. The owner of the process
    does not share it.
    """

    def __init__(self, most: int, waiting: int) -> None:
        self._most, self._waiting_most = most, waiting
        self._change = threading.Condition()
        self._tickets: dict[tuple[str, str], Ticket] = {}
        self._begun: Counter[str] = Counter()
        self._waiting: list[Ticket] = []
        self._closed = False

    @contextmanager
    def slot(self, run_id: str, caller: Caller, watch: RunWatcher, now: int) -> Iterator[Ticket]:
        """A run that begins at once where there is room, else waits: `begin` returns when it is its turn.

        Raises EngineError `engine.overloaded`, or GatherError if a run of the caller with this id is in progress.
        """
        ticket = Ticket(run_id, caller, watch, now)
        key = ticket.owner, run_id
        with self._change:
            if key in self._tickets:
                raise GatherError(
                    "a run with this id is in progress",
                    remedy="use a new id for a new run, or leave it out",
                    code="engine.run_pending",
                )
            own = sum(one.owner == ticket.owner for one in self._waiting)
            if not (self._fits(ticket) or _room(ticket, own, len(self._waiting), self._waiting_most)):
                raise overloaded()
            self._tickets[key] = ticket
            self._waiting.append(ticket)
            self._advance()
        try:
            yield ticket
        finally:
            with self._change:
                del self._tickets[key]
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                else:
                    self._begun[ticket.owner] -= 1
                self._advance()

    def begin(self, ticket: Ticket) -> None:
        """Wait for the turn of a run. One that is cancelled meanwhile returns at once; it then starts no program.

        Raises EngineError `engine.stopping` when the engine stops.
        """
        with self._change:
            while ticket in self._waiting and not ticket.watch.cancel.is_set():
                if self._closed:
                    raise EngineError(
                        "the engine stops, and this run was waiting for its turn",
                        remedy="send it again once the engine serves again",
                        code="engine.stopping",
                    )
                self._change.wait(_LOOK_SECONDS)

    def find(self, run_id: str, caller: Caller) -> Ticket | None:
        """A run of this caller that waits or has begun; never one of another caller."""
        with self._change:
            return self._tickets.get((owner_of(caller), run_id))

    def of(self, caller: Caller) -> list[Ticket]:
        """The runs of this caller that wait or have begun, the newest first."""
        with self._change:
            return [one for one in reversed(self._tickets.values()) if one.owner == owner_of(caller)]

    def close(self) -> None:
        """Let nothing wait any longer; what has begun goes on."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _advance(self) -> None:
        """Let those begin that fit, and report their places to the others."""
        while (chosen := next(filter(self._fits, self._order()), None)) is not None:
            self._waiting.remove(chosen)
            self._begun[chosen.owner] += 1
            chosen.place = 0
        for place, ticket in enumerate(self._order(), 1):
            if ticket.place != place:
                ticket.place = place
                ticket.watch.on_place(place)
        self._change.notify_all()

    def _fits(self, ticket: Ticket) -> bool:
        return _room(ticket, self._begun[ticket.owner], self._begun.total(), self._most)

    def _order(self) -> list[Ticket]:
        """Those that wait, in the order of their turns: first whose caller has the fewest runs before it."""
        before = Counter(self._begun)
        ranks: dict[int, int] = {}
        for at, ticket in enumerate(self._waiting):
            ranks[at] = before[ticket.owner]
            before[ticket.owner] += 1
        return [self._waiting[at] for at in sorted(ranks, key=lambda at: (ranks[at], at))]


def _room(ticket: Ticket, own: int, used: int, most: int) -> bool:
    """Whether the caller of a run may have one more."""
    return used < most if ticket.caller.via is Via.PROCESS else own < most - used


def owner_of(caller: Caller) -> str:
    """A caller in one text: how it came in, and its name."""
    return f"{caller.via.value}:{caller.principal or ''}"


def overloaded() -> EngineError:
    """The error for a run beyond the maximum number."""
    return EngineError(
        "the maximum number of programs is running, and the queue is full",
        remedy="try again later, or cancel a run",
        code="engine.overloaded",
    )
