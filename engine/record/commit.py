"""Group commit: requests that arrive while a batch is being synced join the next batch.

A line gets its number and its place in the chain when it joins the queue, so that a batch is ready when its
turn comes. One of the waiting threads leads: it writes everything queued, notifies the others, and passes the lead
on. A single thread therefore writes its own line without switching threads. Callers on an event loop never lead: one
worker thread does it for them and is nearly always in `write` or `fdatasync`.

A failed batch fails all waiting requests and all later ones.
"""

from __future__ import annotations

import asyncio
import errno
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256

from engine.errors import RecordError
from engine.record.chain import head

BATCH_RECORDS = 1_024
"""Lines of one batch: with more, the first waits noticeably longer for the last."""

BATCH_BYTES = 64 << 20
"""Maximum bytes of a batch, except for a single line: a `write` accepts at most 2 GiB, and memory has it twice."""

Write = Callable[[bytes, int, str, bytes], None]
"""Makes lines durable: their bytes, how many, the digest of the last one, the events that they claim."""

Failure = Callable[[BaseException | None], RecordError]
"""Creates the error for a failure; None means an earlier failure."""


@dataclass(slots=True, eq=False)
class _Ticket:
    """One queued line, or an action that must not run while a line is written.

    Its waiter is a thread blocked on `held`, or a future of a loop; none if it leads or has left. `batch` is what
    the ticket leads and has not notified the others yet.
    """

    line: bytes = b""
    events: bytes = b""
    seq: int = 0
    hash: str = ""
    joining: bool = False
    done: bool = False
    error: RecordError | None = None
    held: threading.Lock | None = None
    future: asyncio.Future[int] | None = None
    action: Callable[[], None] | None = None
    batch: list[_Ticket] = field(default_factory=list)

    def outcome(self) -> int:
        if self.error is not None:
            raise self.error
        return self.seq


class GroupCommit:
    """A queue of lines before one `write`. Threads and event loops may use it at once."""

    def __init__(self, seq: int, last: str, write: Write, stop: Callable[[], None], failure: Failure) -> None:
        """`stop` is called after a failure, before any caller is notified."""
        self._seq = seq
        self._hash = last
        self._write = write
        self._stop = stop
        self._failure = failure
        self._guard = threading.Lock()
        self._queue: deque[_Ticket] = deque()
        self._leader: _Ticket | None = None
        self.open = True
        """False after a failure or `close`, permanently."""
        self.failed = False
        self.reason: RecordError | None = None
        self._idle: threading.Lock | None = None
        self._worker = _Ticket(held=None)
        self._calls: queue.SimpleQueue[_Ticket | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def commit(self, body: bytes, events: bytes) -> int:
        """Wait until a line with this body is durable; returns its seq. Raises RecordError."""
        return self._wait(_Ticket(body, events))

    def commit_many(self, lines: Sequence[tuple[bytes, bytes]]) -> list[int | RecordError]:
        """`commit` for many lines in few batches; returns the seq or the failure of each."""
        tickets = [_Ticket(body, events) for body, events in lines]
        if tickets:
            with suppress(RecordError):
                self._wait(tickets[-1], tickets[:-1])
        return [ticket.seq if ticket.error is None else ticket.error for ticket in tickets]

    def run(self, action: Callable[[], None]) -> None:
        """Run `action` between two batches; an OSError from it closes the log, a RecordError is only raised here."""
        self._wait(_Ticket(action=action))

    def _wait(self, ticket: _Ticket, before: Sequence[_Ticket] = ()) -> int:
        """Wait for a line; the tickets `before` it have no waiter of their own and share its outcome."""
        try:
            self._join(ticket, before)
            turn = ticket.held
            if turn is not None:
                turn.acquire()
            self._lead(ticket)
        except BaseException as error:
            self._interrupted(ticket, error)
            raise
        return ticket.outcome()

    async def commit_async(self, body: bytes, events: bytes) -> int:
        """`commit` from an event loop. If the caller is cancelled, its line is still written."""
        ticket = _Ticket(body, events, future=asyncio.get_running_loop().create_future())
        try:
            self._join(ticket)
        except OSError as error:
            self._fail(ticket, error)  # which resolves the future
        except BaseException as error:
            self._interrupted(ticket, error)
            raise
        assert ticket.future is not None  # noqa: S101 (made above)
        return await ticket.future

    def close(self) -> None:
        """Refuse new lines and wait until those queued are durable or have failed."""
        with self._guard:
            self.open = False
            if self._leader is not None and self._idle is None:
                self._idle = threading.Lock()
                self._idle.acquire()
            idle = self._idle
        if idle is not None:
            with idle:
                pass
        thread = self._thread
        if thread is not None:
            self._calls.put(None)
            thread.join()

    def _join(self, ticket: _Ticket, before: Sequence[_Ticket] = ()) -> None:
        with self._guard:
            if not self.open:
                error = self._failure(None)
                for queued in (*before, ticket):
                    queued.error = error
                raise error
            ticket.joining = True
            for queued in (*before, ticket):
                if queued.action is None:
                    self._chain(queued)
                self._queue.append(queued)
            if self._leader is None:
                self._lead_with(ticket if ticket.future is None else self._worker)
            elif ticket.future is None:
                ticket.held = threading.Lock()
                ticket.held.acquire()
            ticket.joining = False

    def _chain(self, ticket: _Ticket) -> None:
        seq = self._seq + 1
        line = head(seq, self._hash) + ticket.line[1:]
        ticket.hash = self._hash = sha256(line).hexdigest()
        ticket.line, ticket.seq, self._seq = line, seq, seq

    def _lead_with(self, ticket: _Ticket) -> None:
        """Raises OSError if the worker is needed and cannot start; the leader then stays the same."""
        if ticket is self._worker and self._thread is None:
            self._thread = self._started()
        self._leader = ticket  # before the worker looks whether it is that
        if ticket is self._worker:
            self._calls.put(ticket)

    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._work, name="record", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, "no more threads can be started") from error
        return thread

    def _work(self) -> None:
        while (ticket := self._calls.get()) is not None:
            try:
                self._lead(ticket)
            except BaseException as error:  # noqa: BLE001 (nothing else would notify the waiting callers)
                self._interrupted(ticket, error)

    def _lead(self, ticket: _Ticket) -> None:
        """Write batch after batch while this ticket leads; nothing where it does not."""
        while self._leader is ticket:
            batch = self._next_batch(ticket)
            try:
                self._do(batch)
                with self._guard:
                    for finished in batch:
                        finished.done = True
                    self._hand_on(ticket)
            except OSError as error:
                self._fail(ticket, error)
                return
            _notify(batch)
            ticket.batch = []

    def _next_batch(self, ticket: _Ticket) -> list[_Ticket]:
        with self._guard:
            waiting, size = self._queue, 0
            while waiting and len(ticket.batch) < BATCH_RECORDS:
                size += len(waiting[0].line) + len(waiting[0].events)
                if ticket.batch and (size > BATCH_BYTES or waiting[0].action or ticket.batch[0].action):
                    break
                ticket.batch.append(waiting[0])
                waiting.popleft()
            return ticket.batch

    def _do(self, batch: list[_Ticket]) -> None:
        action = batch[0].action
        if action is None:
            lines = b"\n".join([*[ticket.line for ticket in batch], b""])
            self._write(lines, len(batch), batch[-1].hash, b"".join([ticket.events for ticket in batch]))
            return
        try:
            action()
        except RecordError as error:
            batch[0].error = error

    def _hand_on(self, ticket: _Ticket) -> None:
        """Choose the leader of the next batch; the worker leads until none waits, a thread only for its own line."""
        if not self._queue:
            self._leader = None
            if self.failed:  # while this batch was on its way
                self._stop()
            self._release_idle()
            return
        if not ticket.done:  # the worker never is
            return
        following = next((ticket for ticket in self._queue if ticket.held is not None), None)
        if following is None or following.held is None:
            self._lead_with(self._worker)
        else:
            turn, following.held = following.held, None
            self._leader = following
            turn.release()

    def _interrupted(self, ticket: _Ticket, error: BaseException) -> None:
        """A thread that is interrupted while it waits leaves the queue; interrupted elsewhere, it stops the log."""
        with self._guard:
            waits = not ticket.joining and self._leader is not ticket
            if waits:
                ticket.held = None
        if waits:
            _notify(ticket.batch)  # led, passed on, and interrupted while notifying
        else:
            self._fail(ticket, error)

    def _fail(self, ticket: _Ticket, error: BaseException) -> None:
        with self._guard:
            self.open = False
            self.failed = True
            self.reason = self.reason or self._failure(error)
            waiting = list({id(other): other for other in (*ticket.batch, *self._queue)}.values())
            self._queue.clear()
            for other in waiting:
                if not other.done:
                    other.error = self._failure(error)
            if self._leader is None or self._leader is ticket:  # else its batch is on its way, and files are in use
                self._leader = None
                self._stop()
                self._release_idle()
        _notify(waiting)

    def _release_idle(self) -> None:
        if self._idle is not None:
            self._idle.release()
            self._idle = None


def _notify(batch: list[_Ticket]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Ticket]] = {}
    for ticket in batch:
        turn, future = ticket.held, ticket.future
        if turn is not None:
            with suppress(RuntimeError):  # notified before
                turn.release()
        elif future is not None:
            loops.setdefault(future.get_loop(), []).append(ticket)
    for loop, waiting in loops.items():
        with suppress(RuntimeError):  # the loop is closed; no caller waits there any more
            loop.call_soon_threadsafe(_settle, waiting)


def _settle(waiting: list[_Ticket]) -> None:
    for ticket in waiting:
        if ticket.future is None or ticket.future.done():  # cancelled
            continue
        if ticket.error is None:
            ticket.future.set_result(ticket.seq)
        else:
            ticket.future.set_exception(ticket.error)
