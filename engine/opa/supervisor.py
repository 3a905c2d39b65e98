"""Keep one OPA answering: start it again when it dies, hangs or grows, and change its policy without a gap.

    start ─> current ──dies──> back-off ──> another process, same archives
                │ hangs ──> killed ─┘
                │ grows ──> second process, same archives ─┐
                └ activate ─> second process, its policy ──┴─> checked ─> switched ─> the old one drained

Threads only: one watches, one a process keeps it alive (server.py), one replaces. A request takes a
generation, asks it, gives it back; so no switch takes an answer away from it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic

from engine.errors import DecideError, EngineError
from engine.opa.binary import Binary
from engine.opa.generation import Generation, PolicyT
from engine.opa.reply import DOCTOR, unavailable
from engine.opa.server import Served, Server
from engine.opa.watch import SupervisionLimits, Watch
from engine.settings import OpaLimits


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
        limits: OpaLimits,
        on_event: Callable[[str, dict[str, Any]], None],
        supervision: SupervisionLimits,
        verification_key: Path | None,
    ) -> None:
        self.restarts = 0
        self._binary = binary
        self._limits = limits
        self._on_event = on_event
        self._supervision = supervision
        self._key = verification_key
        self._owner = os.getpid()
        self._changed = threading.Condition()
        self._activating = threading.Lock()
        self._closing = False
        self._candidates: set[Server] = set()  # started and not yet current
        self._current: Generation[PolicyT]
        self._replacing: threading.Thread | None = None
        self._watching = threading.Thread(target=self._watch, name="opa-supervisor", daemon=True)

    @classmethod
    def start(
        cls,
        binary: Binary,
        policy: PolicyT,
        limits: OpaLimits,
        on_event: Callable[[str, dict[str, Any]], None],
        *,
        supervision: SupervisionLimits | None = None,
        verification_key: Path | None = None,
    ) -> Supervisor[PolicyT]:
        """Start OPA, wait until it answers with exactly the revisions of the policy, and watch it. Raises DecideError.

        With a key, now and at every activation, archives that are not signed with it (ES256) are refused.
        """
        made = cls(binary, limits, on_event, supervision or SupervisionLimits(), verification_key)
        with made._candidate(policy, made._served(policy)) as first:
            made._current = first
            first.promoted = True
        try:
            made._watching.start()
        except BaseException as error:
            made._current.close()
            if isinstance(error, RuntimeError):
                raise unavailable("OPA cannot be watched: no thread can be started", DOCTOR) from error
            raise
        return made

    @property
    def current(self) -> Generation[PolicyT]:
        """The generation that new requests take; never blocks. To ask it, `acquire` or `lease` it."""
        return self._current

    def acquire(self) -> Generation[PolicyT]:
        """The current generation, kept until `release`: however the policy changes, it goes on answering."""
        if os.getpid() != self._owner:  # in a fork the lock may be held for ever; asking is refused there
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

    @contextmanager
    def lease(self) -> Iterator[Generation[PolicyT]]:
        """`acquire` and `release` around a block."""
        generation = self.acquire()
        try:
            yield generation
        finally:
            self.release(generation)

    def activate(self, policy: PolicyT, check: Callable[[Generation[PolicyT]], None]) -> None:
        """Serve another policy: all or nothing, one activation at a time. Blocks until the old OPA is drained.

        `check` may ask the new OPA and raise. Whatever fails, the old one keeps answering: DecideError
        when the new one does not answer with exactly its revisions, else what `check` raised.
        """
        revisions = policy.revisions.model_dump()
        with self._activating:
            try:
                with self._candidate(policy, self._served(policy)) as fresh:
                    check(fresh)
                    old = self._switch(fresh, None)
            except BaseException as error:
                self._tell("activation_refused", code=_code(error), **revisions)
                raise
            self._tell("activated", pid=fresh.pid, **revisions)
            self._drain(old)

    async def leave(self) -> None:
        """Hang up from this event loop; to be called before the loop ends. Other threads and loops go on."""
        await self._current.leave()

    def close(self) -> None:
        """End OPA and all that watches it; calls under way fail. Nothing in a forked process."""
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
        with self._activating:  # an activation under way fails, as no switch is made any more
            self._current.close()

    def _served(self, policy: PolicyT) -> Served:
        return Served(policy.rules.path, policy.values.path, self._key)

    @contextmanager
    def _candidate(self, policy: PolicyT, served: Served) -> Iterator[Generation[PolicyT]]:
        """Another OPA that answers with exactly the revisions of the policy; closed unless it was switched to."""
        began = time.monotonic()
        server = Server.start(
            self._binary,
            served.rules,
            served.values,
            policy.revisions,
            self._limits,
            served.verification_key,
            self._wake,
        )
        fresh = Generation(policy, server, self._supervision.connections, self._supervision.queue)
        try:
            self._add(server)
            server.ready()
            self._tell("opa_started", pid=server.pid, seconds=round(time.monotonic() - began, 3))
            yield fresh
        finally:
            with self._changed:
                self._candidates.discard(server)
            if not fresh.promoted:
                fresh.close()

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
        watch = Watch(self._supervision)
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
                    self._tell("opa_hung", pid=generation.pid)
                    generation.server.kill()
                elif watch.grows(generation):
                    thread = threading.Thread(target=self._replace, args=(generation,), name="opa-replace", daemon=True)
                    thread.start()
                    self._replacing = thread
            except Exception as error:  # noqa: BLE001 - whatever fails, it is tried again at the next look
                self._tell("opa_restart_failed", code=_code(error))

    def _restart(self, dead: Generation[PolicyT], watch: Watch) -> None:
        if watch.new_death(dead):
            self._tell("opa_exited", pid=dead.pid, seconds=round(time.monotonic() - dead.since, 3))
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._current is not dead, watch.wait_seconds())
            if self._closing or self._current is not dead:
                return
        with self._candidate(dead.policy, dead.server.served) as fresh:
            self._switch(fresh, dead)
        self.restarts += 1
        self._tell("opa_restarted", pid=fresh.pid, restarts=self.restarts)
        dead.close()

    def _replace(self, large: Generation[PolicyT]) -> None:
        resident = large.server.resident_bytes()
        with self._activating:
            try:
                with self._candidate(large.policy, large.server.served) as fresh:
                    self._switch(fresh, large)
            except DecideError as error:
                self._tell("opa_restart_failed", code=error.code)
                return
            self._tell("opa_replaced", pid=fresh.pid, replaced=large.pid, resident_bytes=resident)
            self._drain(large)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _tell(self, name: str, **fields: Any) -> None:
        with suppress(Exception):  # supervision outlives whoever looks on
            self._on_event(name, fields)


def _code(error: BaseException) -> str:
    return error.code if isinstance(error, EngineError) else "engine.internal"


def _closed() -> DecideError:
    return unavailable("OPA was closed, or has ended, while its policy was changed", DOCTOR)
