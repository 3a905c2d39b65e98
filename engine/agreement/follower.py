"""An engine that follows the agreement: it loads what is proposed, serves what is active, and reports how far it is.

One thread looks and beats; another one, while there is something to load, loads it and waits for the switch.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from engine.agreement.live import BEAT_SECONDS, LOOK_SECONDS, LiveReplicas
from engine.errors import DecideError, EngineError, fault_inside
from engine.state.part import clock
from engine.state.rows import ActivationRow, Agreement, ReplicaRow
from engine.state.store import Store

PROPOSED_SECONDS = 240.0
"""For which a loaded proposal waits for its switch: twice as long as the one who activates waits for engines."""

_RETRY_SECONDS = 2.0
"""Between two tries to load a release."""

_TRIES = 5
"""To load a release where OPA ends or does not start in time, as on a busy machine."""


@dataclass(frozen=True, slots=True)
class Follows:
    """What the follower needs of its engine."""

    store: Callable[[], Store]
    serving: Callable[[], str | None]
    """The digest of the release that it serves."""
    serve: Callable[[ActivationRow, Callable[[], None]], None]
    """Loads a release, calls the function, which returns when it was switched to, and serves it. Raises EngineError."""
    refused: Callable[[ActivationRow, EngineError], None]
    """Called when a release cannot be loaded or served, once for each reason."""
    now: Callable[[], int]


@dataclass(slots=True)
class _Progress:
    """How far the engine is with one activation."""

    wanted: str | None = None
    ready: bool = False
    fault: EngineError | None = None
    recorded_fault: str | None = None  # the fault that was recorded last
    tries: int = 0
    again: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether another try is not expected to end otherwise."""
        return self.fault is not None and (self.fault.code != "policy_unavailable" or self.tries >= _TRIES)


@dataclass(slots=True)
class Follower:
    """Follows until it is closed."""

    _name: str
    _engine: Follows
    _id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _owner: int = field(default_factory=os.getpid)
    _beats: int = 0
    _beat_at: float = 0.0
    _last_row: ReplicaRow | None = None
    _agreement: Agreement = field(default_factory=Agreement)
    _progress: dict[str, _Progress] = field(default_factory=dict)
    """By activation; of those that are agreed on now."""
    _target: _Progress = field(default_factory=_Progress)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _closing: bool = False
    _live: LiveReplicas = field(default_factory=LiveReplicas)
    _job: threading.Thread | None = None
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; the state need not be usable yet. Raises EngineError."""
        thread = threading.Thread(target=self._follow, name="engine-agreement", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise EngineError(
                "the release that was activated for all engines cannot be followed: no thread can be started",
                remedy="raise the limit of threads, or end other processes, and open the engine again",
            ) from error
        self._thread = thread

    def close(self) -> None:
        """End; other engines do not wait for this one any more. What is being loaded ends once OPA does: see `join`.

        Nothing in a forked process.
        """
        if os.getpid() != self._owner:
            return
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        with suppress(EngineError):
            self._engine.store().remove_replica(self._id)

    def join(self) -> None:
        """Wait until nothing is being loaded any more."""
        if self._job is not None and os.getpid() == self._owner:
            self._job.join()

    def _follow(self) -> None:
        while True:
            with suppress(Exception):  # without this thread, nothing would be followed any more
                self._look()
            with self._changed:
                if self._closing or self._changed.wait_for(lambda: self._closing, LOOK_SECONDS):
                    return

    def _look(self) -> None:
        store = self._engine.store()
        agreement = store.agreement()
        with self._changed:
            self._agreement = agreement
            self._changed.notify_all()
        target = self._next_to_load(agreement)
        if target is not None and (self._job is None or not self._job.is_alive()):
            self._want(target)
        self._beat(store)
        if (switching := agreement.next) is not None and switching.state == "switching":
            self._live.end_switch(store, switching, self._engine.now())

    def _next_to_load(self, agreement: Agreement) -> ActivationRow | None:
        """The release being switched to, else the active one, or the proposed one where that is served or failed."""
        active, coming = agreement.active, agreement.next
        known = [row.id for row in (active, coming) if row is not None]
        self._progress = {id_: self._progress.get(id_) or _Progress(id_) for id_ in known}
        if active is None or coming is None or coming.state == "switching":
            return coming or active
        in_vain = self._progress[active.id].failed and not self._progress[coming.id].failed
        return coming if in_vain or self._engine.serving() == active.digest else active

    def _want(self, activation: ActivationRow) -> None:
        """Load what is wanted, unless it is served, or failed to load a moment ago."""
        progress = self._target = self._progress[activation.id]
        if self._engine.serving() == activation.digest:
            progress.ready, progress.fault = True, None
            return
        progress.ready = False
        gave_up = progress.failed and activation.state == "proposed"
        if not gave_up and clock() >= progress.again:
            self._job = threading.Thread(
                target=self._load, args=(activation, progress), name="engine-agreement-load", daemon=True
            )
            self._job.start()

    def _load(self, activation: ActivationRow, progress: _Progress) -> None:
        def loaded() -> None:
            progress.ready, progress.fault = True, None
            self._await_switch(activation)

        try:
            self._engine.serve(activation, loaded)
        except Exception as error:  # noqa: BLE001  (a fault of ours is a reason too)
            fault = error if isinstance(error, EngineError) else fault_inside("activation", "see the log of the engine")
            progress.tries += 1
            progress.ready, progress.fault, progress.again = False, fault, clock() + _RETRY_SECONDS
            if not self._closing and progress.recorded_fault != fault.one_line():
                progress.recorded_fault = fault.one_line()
                self._engine.refused(activation, fault)

    def _await_switch(self, activation: ActivationRow) -> None:
        """Return when the release was switched to. Raises DecideError when it was given up."""

        def state() -> str | None:
            rows = (self._agreement.active, self._agreement.next)
            return next((row.state for row in rows if row is not None and row.id == activation.id), None)

        with self._changed:
            self._changed.wait_for(lambda: self._closing or state() != "proposed", PROPOSED_SECONDS)
            if self._closing or state() not in {"switching", "active"}:
                raise DecideError(
                    f"release {activation.sequence} of `{activation.name}` was loaded but not activated",
                    remedy="activate it again: `engine policy activate`",
                    code="policy_stale",
                )

    def _beat(self, store: Store) -> None:
        """Say how far this engine is: at once when that changed, else once a second."""
        coming = self._agreement.next
        progress = self._target if coming is None else self._progress.get(coming.id, self._target)
        progress = progress if progress.fault is not None else self._target  # a proposal waits for that answer
        fault = progress.fault
        reported_fault = None if fault is None else f"{fault.one_line()}\n{fault.remedy}"
        serving = self._engine.serving()
        if self._last_row is not None and self._job is not None and self._job.is_alive():
            serving = self._last_row.serving  # until the last decision under it has ended
        wanted = progress.wanted if fault is None or progress.failed else None  # an activation waits for another try
        row = ReplicaRow(*(self._id, self._name, 0, 0, serving), wanted, progress.ready, reported_fault)
        if row == self._last_row and clock() - self._beat_at < BEAT_SECONDS:
            return
        store.beat(replace(row, beats=self._beats + 1, seen_at=self._engine.now()))
        self._last_row, self._beats, self._beat_at = row, self._beats + 1, clock()
