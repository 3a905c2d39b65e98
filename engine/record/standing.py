"""The record of a running engine: reopened after a fault, with a new checkpoint every second.

A log that has failed is never written to again. A separate thread opens another one on the same files once
the fault has passed: everything answered must be there; what was written and never answered is cut, saved
and recorded. Until then, every append fails at once with the reason. The same thread writes the
periodic checkpoints, stores them in the engine's state, and performs orders that it finds there for this
chain. After a chain was open, no other one is used.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.errors import EngineError, RecordError, stack_of
from engine.record.chain import Position
from engine.record.chains import claim
from engine.record.heads import Heads
from engine.record.layout import LOCK, RECORDS
from engine.record.log import RecordLog
from engine.record.model import Body, RecoveryRecord
from engine.record.recovery import Answered
from engine.record.retain_chains import retain_chains
from engine.record.retention import Retained, RetentionOrder
from engine.record.source_events import SourceEvent
from engine.record.storage import ChangedError, Storage

_TICK_SECONDS = 1.0
"""Between two looks at the record: how long lines stay without a checkpoint, and a fault that has passed lasts."""

_REST = 10
"""The pause after a failed attempt, in multiples of its duration: retries cost a tenth of a core at most."""


class StandingLog:
    """A record that outlives the faults of its disk; threads may share it. Never raises when it is opened."""

    def __init__(
        self,
        state: Path,
        heads: Callable[[], Heads],
        *,
        clock: Callable[[], datetime],
        on_event: Callable[[str, Mapping[str, Any]], None] = lambda *_: None,
    ) -> None:
        """`heads` opens the state; `clock` returns aware times, for checkpoints and recoveries.

        `on_event` receives faults and their end.
        """
        self._heads = heads
        self._clock = clock
        self._on_event = on_event
        self._owner = os.getpid()
        self._state = state
        self.chain = 1
        """The number of the chain that was claimed last; it stays the same once it was open."""
        self._storage: Storage | None = None
        self._log: RecordLog | None = None
        self._fault: RecordError | None = None
        self._answered: Answered | None = None
        self._compared = False
        self._remembered = -1
        self._failed_orders: set[str] = set()
        self._not_before = 0.0
        self._stop = threading.Event()
        self._open()
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
        """Whether lines can be written now, as far as known."""
        log = self._log
        return log is not None and log.usable

    @property
    def recovered(self) -> tuple[RecoveryRecord, ...]:
        """The unfinished writes that the last opening cut off."""
        return () if self._log is None else self._log.opened.recovered

    def append(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """`RecordLog.append`."""
        return self.usable_log().append(body, events)

    def append_many(self, bodies: Sequence[tuple[Body, Sequence[SourceEvent]]]) -> list[int | RecordError]:
        """`RecordLog.append_many`."""
        return self.usable_log().append_many(bodies)

    async def append_async(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """`RecordLog.append_async`."""
        return await self.usable_log().append_async(body, events)

    def retain(self, order: RetentionOrder) -> dict[int, Retained | None]:
        """Carry out an order on this chain, then `retain_chains`. Raises EngineError."""
        log, heads = self.usable_log(), self._heads()
        own = order.carry_out(log, self._state)
        return {self.chain: own, **retain_chains(self._state, self.chain, order, heads)}

    def close(self) -> None:
        """Write a last checkpoint, store it in the state, release the lock; no effect in a forked process.

        Raises RecordError, as `RecordLog.close`.
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
            self._release()

    def usable_log(self) -> RecordLog:
        """The open log. Raises RecordError if there is none."""
        log = self._log
        if log is None:
            raise self._fault or RecordError("the record is closed", remedy="open a new engine")
        return log

    def _keep(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            try:
                self._tick()
            except Exception as error:  # noqa: BLE001  (a record without its keeper would never recover)
                self._failed(self._crashed(error))

    def _tick(self) -> None:
        log = self._log
        if log is not None and log.usable:
            self._vouch(log)
            self._carry_out_orders(log)
        elif time.monotonic() >= self._not_before:
            self._open_again(log)

    def _vouch(self, log: RecordLog) -> None:
        try:
            log.vouch()
            self._remember(log)
        except RecordError as error:
            self._failed(error)

    def _carry_out_orders(self, log: RecordLog) -> None:
        """Perform removal orders from the state; one that fails on a usable record is left to the next engine."""
        with suppress(EngineError):
            heads = self._heads()
            for order in heads.orders(self.chain):
                if order.decision_id in self._failed_orders:
                    continue
                try:
                    removed = order.carry_out(log, self._state)
                except (RecordError, OSError) as error:
                    if log.usable:
                        self._failed_orders.add(order.decision_id)
                    self._report("retention_failed", decision_id=order.decision_id, detail=str(error))
                else:
                    heads.carried_out(self.chain, order.decision_id, removed)

    def _remember(self, log: RecordLog) -> None:
        """Store the last checkpoint in the state; retried a second later if that fails."""
        end = log.opened.vouched
        if self._compared and end.seq == self._remembered:
            return
        try:
            heads = self._heads()
            if not self._compared:
                self._compare(log, heads.record_heads().get(self.chain, {}))
            heads.remember_head(self.chain, log.opened.identity.installation, end)
        except RecordError:
            raise
        except (EngineError, OSError):
            return
        self._remembered = end.seq

    def _compare(self, log: RecordLog, known: Mapping[str, Position]) -> None:
        """Compare with heads that were unreadable when the log was opened. Raises RecordError and closes the log."""
        end = known.get(log.opened.identity.installation)
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
        if answered is not None and answered.alone and not (self._storage and self._storage.holds(LOCK)):
            self._answered = Answered(answered.installation, answered.end, alone=False)
        self._open()

    def _open(self) -> None:
        began = time.monotonic()
        try:
            if self._storage is None:
                self.chain, self._storage = claim(self._state)
            self._log = RecordLog.open(
                self._storage,
                lock_seconds=0.0,
                clock=self._clock,
                heads=self._known,
                answered=self._answered,
            )
        except RecordError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001  (nothing is allowed meanwhile, and it is tried again)
            self._failed(self._crashed(error))
        else:
            if self._fault is not None:
                self._report("record_recovered", lines=self._log.seq)
            self._fault = self._answered = None
        finally:
            if self._log is None and self._answered is None:
                self._release()  # nothing was answered from this chain: the next try may claim another one
        self._not_before = time.monotonic() + _REST * (time.monotonic() - began)

    def _release(self) -> None:
        storage, self._storage = self._storage, None
        if storage is not None:
            storage.close()

    def _known(self) -> Mapping[str, Position]:
        try:
            known = self._heads().record_heads().get(self.chain, {})
        except EngineError:
            self._compared = False
            return {}
        self._compared = True
        return known

    def _failed(self, error: RecordError) -> None:
        """Store the error; for a log that was open, its code stays until a new log is open."""
        if self._answered is not None and error.code != RecordError.code:
            error = RecordError(
                f"the record cannot be reopened: {error.message}", remedy=error.remedy, where=error.where
            )
        if self._fault is None or self._fault.one_line() != error.one_line():
            self._report("record_failed", code=error.code, detail=error.one_line())
        self._fault = error

    def _crashed(self, error: Exception) -> RecordError:
        """The fault for an exception that nothing expects; the stack goes to the log alone, once for many tries."""
        fault = RecordError(
            "the record cannot be used: a fault inside the engine",
            remedy="report it; the log of `engine serve` shows where it failed (`crash`)",
        )
        if self._fault is None or self._fault.message != fault.message:
            self._report("crash", stack=stack_of(error))
        return fault

    def _report(self, event: str, **fields: Any) -> None:
        with suppress(Exception):
            self._on_event(event, fields)


Log = StandingLog | RecordLog
"""What decisions are appended to."""
