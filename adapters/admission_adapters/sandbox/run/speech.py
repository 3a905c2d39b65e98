"""The standard input of a program that is talked to while it runs."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from admission_adapters.sandbox.model import Dialogue

_LOOK_MILLISECONDS = 50
"""How long a writer waits for a program that does not read, before it looks whether that is dead."""


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
def talking(pipe: int, dialogue: Dialogue | None) -> Iterator[None]:
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
