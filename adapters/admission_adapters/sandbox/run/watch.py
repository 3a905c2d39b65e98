"""Supervises a sandbox while its program runs: reads and counts output, kills the program at a limit."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress

from admission_adapters.sandbox.model import Program
from admission_adapters.sandbox.run.outcome import RunObservations
from admission_adapters.sandbox.run.proc import LOOK_SECONDS, tree_seconds
from admission_adapters.sandbox.run.report import Report
from admission_adapters.sandbox.run.start import END_SECONDS, Sandbox

ARTIFACT_SECONDS = 10.0
"""Seconds for the launcher to send the files that the program left."""

_TICK_SECONDS = 0.02
"""How often a cancellation is looked for."""

_CPU_GRACE_SECONDS = 0.5
"""More than the limit: one process that uses it up is ended by the kernel, which is exact, and not by this."""

_PIECE = 1 << 16


class RunSupervision:
    """One run from the moment its program was let go until everything is dead."""

    def __init__(self, sandbox: Sandbox, cancel: threading.Event | None, program: Program) -> None:
        self._sandbox = sandbox
        self._dialogue = program.dialogue
        self._on_output = program.on_output
        relay = None if program.relay is None else program.relay.hear
        self._bounds, self._without = sandbox.setup.bounds, sandbox.setup.without
        self.observed = RunObservations(Report(self._bounds, relay))
        self._cancel = cancel
        self._began = time.monotonic()
        self._ended: float | None = None
        self._killed: float | None = None
        self._looked = self._began
        self._poll = select.poll()

    def until_dead(self) -> RunObservations:
        """Wait until the first process of the sandbox, and with it everything in it, is dead."""
        sandbox = self._sandbox
        watched = [sandbox.stdout, sandbox.stderr, sandbox.report, sandbox.pidfd]
        if sandbox.group is not None and sandbox.group.oom is not None:
            watched.append(sandbox.group.oom)
        for source in watched:
            self._poll.register(source, select.POLLIN)
        alive = True
        while alive:
            self._end_if_due()
            if self._killed is not None and ("kill_tree" in self._without or self._left() <= 0):
                self.observed.undead = "kill_tree" not in self._without
                break
            for source, _ in self._poll.poll(self._wait()):
                alive = alive and source != sandbox.pidfd
                self._take(source)
        self.observed.wall_seconds = (self._ended or time.monotonic()) - self._began
        self._rest()
        return self.observed

    def _end_if_due(self) -> None:
        """Kill once: when the report is complete, or at the first exceeded limit."""
        if self._killed is not None:
            return
        if self.observed.killed is None:
            self.observed.killed = self._passed()
        if self.observed.killed is None and not self.observed.report.complete and not self.observed.report.broken:
            return
        self._killed = time.monotonic()
        if self.observed.report.cpu_seconds is None:
            self.observed.cpu_seconds = max(self.observed.cpu_seconds or 0.0, tree_seconds(self._sandbox.child))
        if "kill_tree" in self._without:
            self._sandbox.process.kill()
        else:
            self._sandbox.kill()

    def _passed(self) -> str | None:
        """The exceeded limit, or that the run was cancelled."""
        if (stream := self._overflow()) is not None:
            return stream
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
        self.observed.cpu_seconds = tree_seconds(self._sandbox.child)
        return self.observed.cpu_seconds > self._bounds.cpu_seconds + _CPU_GRACE_SECONDS

    def _overflow(self) -> str | None:
        """The stream that the program wrote too much to."""
        if "output_cap" in self._without:
            return None
        if self.observed.stdout_bytes > self._bounds.stdout_bytes:
            return "stdout"
        return "stderr" if self.observed.stderr_bytes > self._bounds.stderr_bytes else None

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
        """Read available data; at the end of a pipe return False and stop watching it."""
        sandbox, observed = self._sandbox, self.observed
        if source == sandbox.pidfd:
            return False
        if sandbox.group is not None and source == sandbox.group.oom:
            observed.killed = observed.killed or "memory"
            data = b""
        else:
            data = os.read(source, _PIECE)
        if not data:
            with suppress(KeyError):
                self._poll.unregister(source)
            return False
        if source == sandbox.stdout:
            kept = data[: max(0, self._bounds.stdout_bytes - observed.stdout_bytes)]
            if self._dialogue is not None:
                self._dialogue.hear(kept)
            self._pass_on("stdout", kept)
            observed.stdout_bytes = _count(observed.stdout, observed.stdout_bytes, data, self._bounds.stdout_bytes)
        elif source == sandbox.stderr:
            self._pass_on("stderr", data[: max(0, self._bounds.stderr_bytes - observed.stderr_bytes)])
            observed.stderr_bytes = _count(observed.stderr, observed.stderr_bytes, data, self._bounds.stderr_bytes)
        else:
            observed.report.feed(data)
            if observed.report.wait_status is not None and self._ended is None:
                self._ended = time.monotonic()
        return True

    def _pass_on(self, stream: str, data: bytes) -> None:
        if self._on_output is not None and data:
            self._on_output(stream, data)

    def _rest(self) -> None:
        """Read the rest: everything that was written before the death is in the pipes by now."""
        sandbox, observed = self._sandbox, self.observed
        for pipe in (sandbox.report, sandbox.stdout, sandbox.stderr):
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            while poll.poll(0) and self._take(pipe):
                pass
        if observed.killed in {None, "stderr"}:
            observed.killed = self._overflow()
        if sandbox.group is not None and sandbox.group.killed():
            observed.killed = observed.killed or "memory"
        if observed.report.wait_status is None and not observed.undead:
            observed.exit_line, observed.single = sandbox.exit_line(), sandbox.recipe.single


def _count(buffer: bytearray, count: int, data: bytes, most: int) -> int:
    """Add data up to the limit; returns the new count, which is one more than the limit at most."""
    buffer += data[: most - len(buffer)]
    return min(count + len(data), most + 1)
