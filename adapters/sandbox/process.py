"""One single-use sandbox: ready, then let go with one program, and dead before its answer.

engine → bubblewrap's monitor → the sandbox's first process → the launcher → the program. The engine holds the
first process by its pidfd and kills that, never the monitor. Nothing runs before the engine writes `G`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from adapters.sandbox.handshake import is_dead
from adapters.sandbox.memory import fill
from adapters.sandbox.model import Bounds, Ended, NotStartedError, Program
from adapters.sandbox.outcome import ended, not_started
from adapters.sandbox.recipe import BUBBLEWRAP, Recipe
from adapters.sandbox.start import Started, cannot_be_made, start
from adapters.sandbox.watch import Watch

NOTHING: frozenset[str] = frozenset()


class Sandbox:
    """A sandbox that is ready and waits. `run` it once or `close` it; both end with everything in it dead."""

    def __init__(
        self, started: Started, bounds: Bounds, environment: Mapping[str, str], without: frozenset[str] = NOTHING
    ) -> None:
        self._started = started
        self.untouched = True
        """Whether no program was let go in it, for certain."""
        self._bounds = bounds
        self._environment = dict(environment)
        self._without = without

    @classmethod
    def ready(
        cls,
        bounds: Bounds,
        environment: Mapping[str, str],
        without: frozenset[str] = NOTHING,
        job: Path | None = None,
        recipe: Recipe = BUBBLEWRAP,
    ) -> Sandbox:
        """Start one. Raises NotStartedError, or WorkError for what cannot be stated."""
        return cls(start(bounds, environment, without, job, recipe), bounds, environment, without)

    @property
    def child(self) -> int:
        """The number of its first process on this machine."""
        return self._started.child

    @property
    def alive(self) -> bool:
        """Whether it still waits, as far as anybody can know."""
        return not is_dead(self._started.pidfd)

    def run(self, program: Program, cancel: threading.Event | None = None) -> Ended:
        """Let the program go and give its end. Raises WorkError for a program that cannot be stated.

        Its environment must be the one that the sandbox was started with: it is the interpreter's.
        """
        started = self._started
        try:
            if dict(program.environment) != self._environment:
                raise ValueError("a sandbox runs programs of its own environment only")
            try:
                work = started.recipe.work(program, self._bounds, self._without)
                fill(started.stdin, program.stdin)
                fill(started.job, work)
            except NotStartedError as error:
                return not_started(str(error))
            except OSError as error:
                return not_started(cannot_be_made(error))
            watch = Watch(started, self._bounds, self._without, cancel)
            with suppress(BrokenPipeError):  # it is dead already: nothing was let go
                os.write(started.go, b"G")
                watch.seen.let_go = True
                self.untouched = False
            return ended(watch.until_dead(), self._bounds)
        finally:
            self.close()

    def close(self) -> None:
        """Kill whatever is left of it, wait until that is dead, and give everything back."""
        self._started.close()


def run_once(
    program: Program,
    bounds: Bounds,
    cancel: threading.Event | None = None,
    without: frozenset[str] = NOTHING,
    job: Path | None = None,
    recipe: Recipe = BUBBLEWRAP,
) -> Ended:
    """Start a sandbox, run the program in it, end it. `without` and `job` are for the probe only."""
    try:
        recipe.work(program, bounds, without)  # what cannot be stated starts nothing
        sandbox = Sandbox.ready(bounds, program.environment, without, job, recipe)
    except NotStartedError as error:
        return not_started(str(error))
    return sandbox.run(program, cancel)
