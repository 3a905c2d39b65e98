"""The record of a running engine: opened again after a fault, and vouched for every second.

A log that has failed is never written to again. A thread of its own opens another one on the same files once
the fault has passed: what was answered must be there, what was written and never answered is cut off, kept
aside and recorded. Until then every append fails at once with the reason. The same thread writes the
checkpoints that time asks for, and has the engine's state remember them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from engine.errors import EngineError, RecordError
from engine.record.chain import Position
from engine.record.layout import LOCK, RECORDS
from engine.record.log import RecordLog
from engine.record.model import Body, RecoveryRecord
from engine.record.recovery import Answered
from engine.record.source_events import SourceEvent
from engine.record.storage import ChangedError, DiskStorage

_TICK_SECONDS = 1.0
"""Between two looks at the record: how long lines stay without a checkpoint, and a fault that has passed lasts."""

_REST = 10
"""Times as long as a failed attempt took, until the next one: what is tried in vain costs a tenth of a core at most."""


class Heads(Protocol):
    """Where the ends of records are remembered outside of them. Every method may raise EngineError."""

    def known(self) -> Mapping[str, Position]:
        """The last end of each record, by installation."""
        ...

    def remember(self, installation: str, end: Position) -> None:
        """Keep the end of a record; an earlier one than is known changes nothing."""
        ...


class StandingLog:
    """A record that outlives the faults of its disk; threads may share it. Never raises when it is opened."""

    def __init__(
        self,
        state: Path,
        heads: Heads,
        *,
        lock_seconds: float,
        clock: Callable[[], datetime],
        on_event: Callable[[str, Mapping[str, Any]], None] = lambda *_: None,
    ) -> None:
        """`clock` gives aware times, for checkpoints and recoveries; `on_event` is told of faults and their end."""
        self._state = state
        self._heads = heads
        self._clock = clock
        self._on_event = on_event
        self._owner = os.getpid()
        self._storage = DiskStorage(state)
        self._log: RecordLog | None = None
        self._fault: RecordError | None = None
        self._answered: Answered | None = None
        self._compared = False
        self._remembered = -1
        self._not_before = 0.0
        self._stop = threading.Event()
        self._open(lock_seconds)
        self._thread = threading.Thread(target=self._keep, name="record-keeper", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            with suppress(RecordError):
                self.close()
            self._failed(
                RecordError(
                    "the record cannot be used: no thread can be started",
                    remedy="raise the limit of threads, or end other processes, and open the engine again",
                )
            )

    @property
    def usable(self) -> bool:
        """Whether lines can be written now, as far as is known."""
        log = self._log
        return log is not None and log.usable

    @property
    def recovered(self) -> tuple[RecoveryRecord, ...]:
        """What the last opening had to cut off."""
        return () if self._log is None else self._log.recovered

    def append(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """`RecordLog.append`."""
        return self.usable_log().append(body, events)

    def append_many(self, bodies: Sequence[tuple[Body, Sequence[SourceEvent]]]) -> list[int | RecordError]:
        """`RecordLog.append_many`."""
        return self.usable_log().append_many(bodies)

    async def append_async(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """`RecordLog.append_async`."""
        return await self.usable_log().append_async(body, events)

    def close(self) -> None:
        """Write a last checkpoint, have it remembered, let go of the lock; nothing in a forked process.

        Raises RecordError; every line is durable all the same.
        """
        if os.getpid() != self._owner:
            return
        self._stop.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()
        log, self._log = self._log, None
        try:
            if log is not None:
                log.close()
                self._remember(log)
        finally:
            self._storage.close()

    def usable_log(self) -> RecordLog:
        """The log that is written now. Raises RecordError where there is none."""
        log = self._log
        if log is None:
            raise self._fault or RecordError("the record is closed", remedy="open another engine")
        return log

    def _keep(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            try:
                self._tick()
            except Exception as error:  # noqa: BLE001  (a record without its keeper would never recover)
                self._failed(_unexpected(error))

    def _tick(self) -> None:
        log = self._log
        if log is not None and log.usable:
            self._vouch(log)
        elif time.monotonic() >= self._not_before:
            self._open_again(log)

    def _vouch(self, log: RecordLog) -> None:
        try:
            log.vouch()
            self._remember(log)
        except RecordError as error:
            self._failed(error)

    def _remember(self, log: RecordLog) -> None:
        """Have the state remember the last checkpoint; a state that fails is asked again a second later."""
        end = log.vouched
        if self._compared and end.seq == self._remembered:
            return
        try:
            if not self._compared:
                self._compare(log, self._heads.known())
            self._heads.remember(log.installation, end)
        except RecordError:
            raise
        except (EngineError, OSError):
            return
        self._remembered = end.seq

    def _compare(self, log: RecordLog, known: Mapping[str, Position]) -> None:
        """Compare with what could not be read when the log was opened. Raises RecordError, and the log is closed."""
        end = known.get(log.installation)
        if known and (end is None or not log.contains(end)):

            def stop(_: object) -> None:
                raise ChangedError(RECORDS)

            log.between_batches(stop)
        self._compared = True

    def _open_again(self, failed: RecordLog | None) -> None:
        if failed is not None:
            self._failed(failed.failure)
            self._answered = failed.leave()
            self._log = None
        answered = self._answered
        if answered is not None and answered.alone and not self._storage.holds(LOCK):
            self._answered = Answered(answered.installation, answered.end, alone=False)
        self._open(0.0)

    def _open(self, lock_seconds: float) -> None:
        began = time.monotonic()
        try:
            self._log = RecordLog.on(
                self._storage,
                lock_seconds=lock_seconds,
                clock=self._clock,
                place=str(self._state),
                heads=self._known,
                answered=self._answered,
            )
        except RecordError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001  (nothing is allowed, whatever the reason, and it is tried again)
            self._failed(_unexpected(error))
        else:
            if self._fault is not None:
                self._say("record_recovered", lines=self._log.seq)
            self._fault = self._answered = None
        self._not_before = time.monotonic() + _REST * (time.monotonic() - began)

    def _known(self) -> Mapping[str, Position]:
        try:
            known = self._heads.known()
        except EngineError:
            self._compared = False
            return {}
        self._compared = True
        return known

    def _failed(self, error: RecordError) -> None:
        """Keep the reason: of a log that was open its code stays, whatever stands in the way of another one."""
        if self._answered is not None and error.code != RecordError.code:
            error = RecordError(
                f"the record cannot be opened again: {error.message}", remedy=error.remedy, where=error.where
            )
        if self._fault is None or self._fault.one_line() != error.one_line():
            self._say("record_failed", code=error.code, detail=error.one_line())
        self._fault = error

    def _say(self, event: str, **fields: Any) -> None:
        with suppress(Exception):
            self._on_event(event, fields)


def _unexpected(error: Exception) -> RecordError:
    return RecordError(
        f"the record cannot be used: an unexpected {type(error).__name__}",
        remedy="this is a fault of the engine: report it",
    )
