"""What one look at OPA says: it hangs, it grows too large, it died again and how long to wait."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from engine.errors import DecideError
from engine.opa.generation import Generation


@dataclass(frozen=True, slots=True)
class SupervisionLimits:
    """When OPA is started again or replaced: seconds, bytes and counts."""

    restart_first_seconds: float = 0.05  # before it is started again; a start takes longer than this
    restart_longest_seconds: float = 5.0  # each start that does not last doubles the wait up to this
    steady_seconds: float = 10.0  # a process that lasted this long ended the trouble: the wait begins anew
    look_seconds: float = 1.0  # between two looks at its answers and its memory
    probe_seconds: float = 1.0  # for a decision of a fraction of a millisecond, on a loaded machine
    probe_failures: int = 3  # in a row, with no other answer between, before it is killed
    memory_bytes: int = 1 << 30  # resident; the largest inputs take half, ordinary load 120 MB
    replace_pause_seconds: float = 60.0  # between two replacements: one that grows at once would never end
    drain_seconds: float = 65.0  # for requests under way at a switch; the longest answer may take 60
    connections: int = 4  # calls in flight of one event loop; more only wait inside OPA, and slow the slowest
    queue: int = 1024  # calls of one event loop that wait for a connection: about a second of work


class Watch:
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
        """Whether nothing was answered for too long; asks it itself when nobody else got an answer."""
        if generation is not self._seen or generation.answers != self._answers:
            self._seen, self._answers, self._misses = generation, generation.answers, 0
            return False
        try:
            generation.server.probe(self._limits.probe_seconds)
        except DecideError:
            self._misses += 1
        else:
            self._misses = 0
        return self._misses >= self._limits.probe_failures

    def grows(self, generation: Generation[Any]) -> bool:
        """Whether it takes more memory than it may and it is time to do something about it."""
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
