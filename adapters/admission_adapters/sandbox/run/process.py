"""One program in its own sandbox, which is dead before the result is returned.

engine → bubblewrap's monitor → the sandbox's first process → the launcher → the program. The engine has the
pidfd of the first process and kills that, never the monitor. Nothing runs before the engine writes `G`.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from admission_adapters.sandbox.model import Bounds, Dialogue, NotStartedError, Program, RunResult, Tunnels
from admission_adapters.sandbox.run.outcome import ended, not_started
from admission_adapters.sandbox.run.recipe import BUBBLEWRAP, Recipe, Setup, fill
from admission_adapters.sandbox.run.start import Sandbox, cannot_be_made, start
from admission_adapters.sandbox.run.watch import RunSupervision

NOTHING: frozenset[str] = frozenset()

_LOOK_MILLISECONDS = 50
"""How long a writer waits for a program that does not read, before it looks whether that is dead."""


def run_in(sandbox: Sandbox, program: Program, cancel: threading.Event | None = None) -> RunResult:
    """Run the program in a sandbox that waits, and close it. Raises WorkError for a program that cannot be encoded.

    The program's environment must be the one that the sandbox was started with: it is the interpreter's.
    """
    setup = sandbox.setup
    try:
        same = dict(program.environment) == dict(setup.environment) and program.packages == setup.packages
        if not same or setup.talks != (program.dialogue is not None):
            raise ValueError("a prepared sandbox runs only programs with the same environment and kind of input")
        try:
            work = sandbox.recipe.work(program, setup.bounds, setup.without)
            if program.dialogue is None:
                fill(sandbox.stdin, program.stdin)
            fill(sandbox.job, work)
        except NotStartedError as error:
            return not_started(str(error))
        except OSError as error:
            return not_started(cannot_be_made(error))
        watch = RunSupervision(sandbox, cancel, program)
        with suppress(BrokenPipeError):  # it is dead already: nothing was let go
            os.write(sandbox.go, b"G")
            watch.observed.let_go = True
            sandbox.untouched = False
        talks = _talking(sandbox.stdin, program.dialogue), _talking(sandbox.go, program.relay)
        with talks[0], talks[1], _tunnelling(sandbox.listener, program.tunnels, cancel):
            return ended(watch.until_dead(), setup.bounds)
    finally:
        sandbox.close()


class _Speech:
    """Writes to a pipe until the program is dead; a descriptor that was closed may belong to something else."""

    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self._pipe = pipe
        self._room = select.poll()
        self._room.register(pipe, select.POLLOUT)
        self._lock = threading.Lock()
        self._over = False

    def write(self, data: bytes) -> None:
        """Write all of it; waits as long as the program does not read. Raises BrokenPipeError once it is dead."""
        rest = memoryview(data)
        while rest:
            self._room.poll(_LOOK_MILLISECONDS)
            with self._lock, suppress(BlockingIOError):
                if self._over:
                    raise BrokenPipeError
                rest = rest[os.write(self._pipe, rest) :]

    def close(self) -> None:
        """Nothing is written from here on."""
        with self._lock:
            self._over = True


@contextmanager
def _talking(pipe: int, dialogue: Dialogue | None) -> Iterator[None]:
    """Let the dialogue write to the pipe for as long as the block lasts."""
    if dialogue is None:
        yield
        return
    speech = _Speech(pipe)
    try:
        dialogue.begin(speech.write)
        yield
    finally:
        speech.close()
        dialogue.end()


@contextmanager
def _tunnelling(
    listener: socket.socket | None, tunnels: Tunnels | None, cancel: threading.Event | None
) -> Iterator[None]:
    """Let the listener be served as long as the block lasts; it is closed if nothing serves it."""
    if listener is None or tunnels is None:
        if listener is not None:
            listener.close()
        yield
        return
    tunnels.begin(listener)
    try:
        yield
    finally:
        tunnels.end(cancelled=cancel is not None and cancel.is_set())


def run_once(
    program: Program,
    bounds: Bounds,
    cancel: threading.Event | None = None,
    without: frozenset[str] = NOTHING,
    job: Path | None = None,
    recipe: Recipe = BUBBLEWRAP,
) -> RunResult:
    """Start a sandbox, run the program in it, end it. `without` and `job` are for the probe only."""
    try:
        recipe.work(program, bounds, without)  # what cannot be stated starts nothing
        talks = program.dialogue is not None
        setup = Setup(bounds, program.environment, without, job, talks=talks, packages=program.packages)
        sandbox = start(setup, recipe)
    except NotStartedError as error:
        return not_started(str(error))
    return run_in(sandbox, program, cancel)
