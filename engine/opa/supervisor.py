"""Keeps one OPA answering: restarts it if it dies, hangs or grows, and replaces its policy without downtime.

    start ─> current ──dies──> back-off ──> another process, same archives
                │ hangs ──> killed ─┘
                │ grows ──> second process, same archives ─┐
                └ activate ─> second process, its policy ──┴─> checked ─> switched ─> the old one drained

Uses threads: one watches, one per process keeps it alive (server.py), one replaces. A request leases a
generation, queries it and releases it, so that a switch interrupts no query.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from engine.binaries import Binary
from engine.errors import DecideError, EngineError
from engine.opa.generation import Generation, PolicyT
from engine.opa.reply import DOCTOR, unavailable
from engine.opa.server import Served, Server
from engine.opa.sharing import SharedAnswers, reads
from engine.settings import OpaLimits


@dataclass(frozen=True, slots=True)
class SupervisionLimits:
    """When OPA is started again or replaced: seconds, bytes and counts."""

    restart_first_seconds: float = 0.05  # delay before a restart; shorter than a start
    restart_longest_seconds: float = 5.0  # each start that does not last doubles the wait up to this
    steady_seconds: float = 10.0  # a process that lasted this long ended the trouble: the wait begins anew
    look_seconds: float = 1.0  # between two looks at its answers and its memory
    probe_seconds: float = 1.0  # for a decision of a fraction of a millisecond, on a loaded machine
    probe_failures: int = 3  # in a row, with no other answer between, before it is killed
    memory_bytes: int = 1 << 30  # resident; the largest inputs use half, ordinary load 120 MB
    replace_pause_seconds: float = 60.0  # between two replacements: one that grows at once would never end
    drain_seconds: float = 65.0  # for running requests at a switch; the longest answer may take 60
    connections: int = 4  # calls in flight of one event loop; more only wait inside OPA, and slow the slowest
    queue: int = 16_384  # calls of one event loop that wait for a connection; a server lets far fewer decide at once


class HealthHistory:
    """What one look at OPA needs to know of the looks before."""

    def __init__(self, limits: SupervisionLimits) -> None:
        self._limits = limits
        self._seen: Generation[Any] | None = None
        self._answers = 0
        self._misses = 0
        self._dead: Generation[Any] | None = None
        self._wait = limits.restart_first_seconds
        self._replaced = float("-inf")

    def hangs(self, generation: Generation[Any]) -> bool:
        """Whether OPA has not answered for too long; sends its own query if no caller got an answer."""
        if generation is not self._seen or generation.answers != self._answers:
            self._seen, self._answers, self._misses = generation, generation.answers, 0
            return False
        try:
            generation.server.probe(self._limits.probe_seconds)
        except DecideError:
            self._misses += 1
        else:
            self._misses = 0
        return self._misses > 0 and self._misses % self._limits.probe_failures == 0  # what was killed dies soon

    def grows(self, generation: Generation[Any]) -> bool:
        """Whether it exceeds its memory limit and a replacement is due."""
        now = time.monotonic()
        if now - self._replaced < self._limits.replace_pause_seconds:
            return False
        if generation.server.resident_bytes() <= self._limits.memory_bytes:
            return False
        self._replaced = now
        return True

    def new_death(self, generation: Generation[Any]) -> bool:
        """Whether this death was not seen before; a long life before it ends an earlier trouble."""
        if generation is self._dead:
            return False
        self._dead = generation
        if time.monotonic() - generation.since >= self._limits.steady_seconds:
            self._wait = self._limits.restart_first_seconds
        return True

    def wait_seconds(self) -> float:
        """How long to wait before the next start; twice as long each time."""
        wait = self._wait
        self._wait = min(wait * 2, self._limits.restart_longest_seconds)
        return wait


class Supervisor(Generic[PolicyT]):
    """Owns the current OPA process: restarts it, swaps policies. Safe to share between threads and event loops.

        generation = supervisor.acquire()
        try:
            reply = generation.ask("decision", document)
        finally:
            supervisor.release(generation)

    `on_event` gets a name and fields without content, from any thread; what it raises is dropped.
    """

    def __init__(
        self,
        binary: Binary,
        policy: PolicyT,
        served: Callable[[PolicyT], Served],
        limits: OpaLimits,
        on_event: Callable[[str, dict[str, Any]], None],
        supervision: SupervisionLimits | None = None,
    ) -> None:
        """Start OPA, wait until it answers with exactly the revisions of the policy, and watch it. Raises DecideError.

        `served` returns the files of a policy, now and at every activation.
        """
        self.restarts = 0
        self._binary = binary
        self._limits = limits
        self._on_event = on_event
        self._supervision = supervision or SupervisionLimits()
        self._served = served
        self._owner = os.getpid()
        self._changed = threading.Condition()
        self._activating = threading.Lock()
        self._closing = False
        self._candidates: set[Server] = set()  # started and not yet current
        self._replacing: threading.Thread | None = None
        self._watching = threading.Thread(target=self._watch, name="opa-supervisor", daemon=True)
        with self._candidate(policy, self._served(policy)) as first:
            self._current = first
            first.promoted = True
        try:
            self._watching.start()
        except BaseException as error:
            self._current.close()
            if isinstance(error, RuntimeError):
                raise unavailable("OPA cannot be watched: no thread can be started", DOCTOR) from error
            raise

    @property
    def current(self) -> Generation[PolicyT]:
        """The generation for new requests; never blocks. `acquire` it before querying it."""
        return self._current

    def acquire(self) -> Generation[PolicyT]:
        """The current generation, leased until `release`: it keeps answering even if the policy changes."""
        if os.getpid() != self._owner:  # in a fork the lock may never be released; queries are refused there
            return self._current
        with self._changed:
            self._current.holders += 1
            return self._current

    def release(self, generation: Generation[PolicyT]) -> None:
        """Give back what `acquire` gave."""
        if os.getpid() != self._owner:
            return
        with self._changed:
            generation.holders -= 1
            if generation.holders == 0 and generation is not self._current:
                self._changed.notify_all()

    def activate(self, policy: PolicyT, check: Callable[[Generation[PolicyT]], None]) -> None:
        """Serve another policy: all or nothing, one activation at a time. Blocks until the old OPA is drained.

        `check` may query the new OPA and raise. On any failure, the old one keeps answering: DecideError
        if the new one does not answer with exactly its revisions, else the error of `check`.
        """
        revisions = self._served(policy).revisions.model_dump()
        with self._activating:
            try:
                with self._candidate(policy, self._served(policy)) as fresh:
                    check(fresh)
                    old = self._switch(fresh, None)
            except BaseException as error:
                self._report("activation_refused", code=_code(error), **revisions)
                raise
            self._report("activated", pid=fresh.pid, **revisions)
            self._drain(old)

    async def leave(self) -> None:
        """Hang up from this event loop; to be called before the loop ends. Other threads and loops go on."""
        await self._current.leave()

    def close(self) -> None:
        """End OPA and all that watches it; calls in progress fail. Nothing in a forked process."""
        if os.getpid() != self._owner:
            return
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            candidates = tuple(self._candidates)
        for server in candidates:
            server.kill()
        self._watching.join()
        if self._replacing is not None:
            self._replacing.join()
        with self._activating:  # an activation in progress fails, as no switch is made any more
            self._current.close()

    @contextmanager
    def _candidate(self, policy: PolicyT, served: Served) -> Iterator[Generation[PolicyT]]:
        """Another OPA that answers with exactly the revisions of the policy; closed unless it was switched to."""
        began = time.monotonic()
        server = Server.start(self._binary, served, self._limits, self._wake)
        fresh = Generation(
            policy, server, self._supervision.connections, self._supervision.queue, self._sharing(server)
        )
        try:
            self._add(server)
            server.ready()
            self._report("opa_started", pid=server.pid, seconds=round(time.monotonic() - began, 3))
            yield fresh
        finally:
            with self._changed:
                self._candidates.discard(server)
            if not fresh.promoted:
                fresh.close()

    def _sharing(self, server: Server) -> SharedAnswers | None:
        if not self._limits.shared_answers:
            return None
        find = partial(reads, self._binary, server.served, server.folder)
        return SharedAnswers(
            self._limits.shared_answers, find, lambda point: self._report("sharing_ended", pid=server.pid, point=point)
        )

    def _add(self, candidate: Server) -> None:
        with self._changed:
            if self._closing:
                raise _closed()
            self._candidates.add(candidate)

    def _switch(self, fresh: Generation[PolicyT], instead_of: Generation[PolicyT] | None) -> Generation[PolicyT]:
        """Make it the current one and return the one before. Raises DecideError when that is not the expected one."""
        with self._changed:
            expected = instead_of is None or instead_of is self._current
            if self._closing or not fresh.alive or not expected:
                raise _closed()
            old, self._current = self._current, fresh
            fresh.promoted = True
            self._changed.notify_all()
        return old

    def _drain(self, old: Generation[PolicyT]) -> None:
        try:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or old.holders == 0 or not old.alive, self._supervision.drain_seconds
                )
        finally:
            old.close()

    def _watch(self) -> None:
        watch = HealthHistory(self._supervision)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or not self._current.alive, self._supervision.look_seconds)
                if self._closing:
                    return
                generation = self._current
            try:
                if not generation.alive:
                    self._restart(generation, watch)
                elif watch.hangs(generation):
                    self._report("opa_hung", pid=generation.pid)
                    generation.server.kill()
                elif watch.grows(generation):
                    thread = threading.Thread(target=self._replace, args=(generation,), name="opa-replace", daemon=True)
                    thread.start()
                    self._replacing = thread
            except Exception as error:  # noqa: BLE001 - after any failure, it is tried again at the next check
                self._report("opa_restart_failed", code=_code(error))

    def _restart(self, dead: Generation[PolicyT], watch: HealthHistory) -> None:
        if watch.new_death(dead):
            self._report("opa_exited", pid=dead.pid, seconds=round(time.monotonic() - dead.since, 3))
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._current is not dead, watch.wait_seconds())
            if self._closing or self._current is not dead:
                return
        with self._candidate(dead.policy, dead.server.served) as fresh:
            self._switch(fresh, dead)
        self.restarts += 1
        self._report("opa_restarted", pid=fresh.pid, restarts=self.restarts)
        dead.close()

    def _replace(self, large: Generation[PolicyT]) -> None:
        resident = large.server.resident_bytes()
        with self._activating:
            try:
                with self._candidate(large.policy, large.server.served) as fresh:
                    self._switch(fresh, large)
            except DecideError as error:
                self._report("opa_restart_failed", code=error.code)
                return
            self._report("opa_replaced", pid=fresh.pid, replaced=large.pid, resident_bytes=resident)
            self._drain(large)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _report(self, name: str, **fields: Any) -> None:
        with suppress(Exception):  # supervision outlives its observer
            self._on_event(name, fields)


def _code(error: BaseException) -> str:
    return error.code if isinstance(error, EngineError) else "engine.internal"


def _closed() -> DecideError:
    return unavailable("OPA was closed or ended while its policy was being changed", DOCTOR)
