"""Watches a sandbox while its program runs: reads, counts, and kills where a bound is passed."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress

from adapters.sandbox.cpu import LOOK_SECONDS, tree_seconds
from adapters.sandbox.model import Bounds
from adapters.sandbox.outcome import Seen
from adapters.sandbox.report import Report
from adapters.sandbox.start import END_SECONDS, Started

ARTIFACT_SECONDS = 10.0
"""For the launcher to hand out what the program left."""

_TICK_SECONDS = 0.02
"""How often a cancellation is looked for."""

_CPU_GRACE_SECONDS = 0.5
"""More than the limit: one process that uses it up is ended by the kernel, which is exact, and not by this."""

_PIECE = 1 << 16


class Watch:
    """One run from the moment its program was let go until everything is dead."""

    def __init__(
        self, started: Started, bounds: Bounds, without: frozenset[str], cancel: threading.Event | None
    ) -> None:
        self.seen = Seen(Report(bounds))
        self._started = started
        self._bounds = bounds
        self._without = without
        self._cancel = cancel
        self._began = time.monotonic()
        self._ended: float | None = None
        self._killed: float | None = None
        self._looked = self._began
        self._poll = select.poll()

    def until_dead(self) -> Seen:
        """Return when the first process of the sandbox is dead, and with it everything in it."""
        started = self._started
        watched = [started.stdout, started.stderr, started.report, started.pidfd]
        if started.group is not None and started.group.oom is not None:
            watched.append(started.group.oom)
        for source in watched:
            self._poll.register(source, select.POLLIN)
        alive = True
        while alive:
            self._end_if_due()
            if self._killed is not None and ("kill_tree" in self._without or self._left() <= 0):
                self.seen.undead = "kill_tree" not in self._without
                break
            for source, _ in self._poll.poll(self._wait()):
                alive = alive and source != started.pidfd
                self._take(source)
        self.seen.wall_seconds = (self._ended or time.monotonic()) - self._began
        self._rest()
        return self.seen

    def _end_if_due(self) -> None:
        """Kill once: when the answer is whole, or for the first bound that is passed."""
        if self._killed is not None:
            return
        if self.seen.killed is None:
            self.seen.killed = self._passed()
        if self.seen.killed is None and not self.seen.report.complete and not self.seen.report.broken:
            return
        self._killed = time.monotonic()
        if self.seen.report.cpu_seconds is None:
            self.seen.cpu_seconds = max(self.seen.cpu_seconds or 0.0, tree_seconds(self._started.child))
        if "kill_tree" in self._without:
            self._started.process.kill()
        else:
            self._started.kill()

    def _passed(self) -> str | None:
        """Which bound is passed, or that nobody wants the answer any more."""
        if "output_cap" not in self._without:
            for name, count, most in self._counts():
                if count > most:
                    return name
        if self._ended is not None:
            return None if self._left() > 0 else "artifacts"
        if self._cancel is not None and self._cancel.is_set():
            return "cancelled"
        if self._left() <= 0:
            return "wall"
        return "cpu" if self._cpu_is_used_up() else None

    def _cpu_is_used_up(self) -> bool:
        """Whether the whole tree has had its processor time; looked at now and then."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS or "rlimit_cpu" in self._without:
            return False
        self._looked = now
        self.seen.cpu_seconds = tree_seconds(self._started.child)
        return self.seen.cpu_seconds > self._bounds.cpu_seconds + _CPU_GRACE_SECONDS

    def _counts(self) -> list[tuple[str, int, int]]:
        seen, bounds = self.seen, self._bounds
        return [
            ("stdout", seen.stdout_bytes, bounds.stdout_bytes),
            ("stderr", seen.stderr_bytes, bounds.stderr_bytes),
        ]

    def _left(self) -> float:
        """Seconds until something is due."""
        now = time.monotonic()
        if self._killed is not None:
            return max(0.0, self._killed + END_SECONDS - now)
        if self._ended is not None:
            return max(0.0, self._ended + ARTIFACT_SECONDS - now)
        if "wall_clock" in self._without:
            return END_SECONDS
        return max(0.0, self._began + self._bounds.wall_seconds - now)

    def _wait(self) -> float:
        """Milliseconds to wait for anything to read."""
        if self._ended is not None or self._killed is not None:
            return self._left() * 1000
        return min(self._left(), LOOK_SECONDS if self._cancel is None else _TICK_SECONDS) * 1000

    def _take(self, source: int) -> bool:
        """Read what is there; false, and no longer watched, when nothing more can come."""
        started, seen = self._started, self.seen
        if source == started.pidfd:
            return False
        if started.group is not None and source == started.group.oom:
            seen.killed = seen.killed or "memory"
            data = b""
        else:
            data = os.read(source, _PIECE)
        if not data:
            with suppress(KeyError):
                self._poll.unregister(source)
            return False
        if source == started.stdout:
            seen.stdout_bytes = _count(seen.stdout, seen.stdout_bytes, data, self._bounds.stdout_bytes)
        elif source == started.stderr:
            seen.stderr_bytes = _count(seen.stderr, seen.stderr_bytes, data, self._bounds.stderr_bytes)
        else:
            seen.report.feed(data)
            if seen.report.wait_status is not None and self._ended is None:
                self._ended = time.monotonic()
        return True

    def _rest(self) -> None:
        """Whatever was written before the death is in the pipes by now."""
        started, seen = self._started, self.seen
        for pipe in (started.report, started.stdout, started.stderr):
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            while poll.poll(0) and self._take(pipe):
                pass
        if seen.killed in {None, "stderr"} and "output_cap" not in self._without:
            seen.killed = next((name for name, count, most in self._counts() if count > most), None)
        if started.group is not None and started.group.killed():
            seen.killed = seen.killed or "memory"
        if seen.report.wait_status is None and not seen.undead:
            seen.exit_line, seen.single = started.exit_line(), started.recipe.single


def _count(kept: bytearray, count: int, data: bytes, most: int) -> int:
    """Keep up to the bound; the new count, which is one more than the bound at most."""
    kept += data[: most - len(kept)]
    return min(count + len(data), most + 1)
