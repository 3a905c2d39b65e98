"""Cuts connections whose operation takes too long.

PostgreSQL ends slow statements itself, but not when its process is stopped or the network drops packets. Then a
driver waits without end, and its own cancelling waits as well. Shutting down the socket ends the wait at once.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

_TICK_SECONDS = 0.1


class Deadlines:
    """One thread that looks at the connections in use."""

    def __init__(self, seconds: float) -> None:
        """An operation may take `seconds`."""
        self._seconds = seconds
        self._guard = threading.Lock()
        self._busy: dict[int, tuple[psycopg.Connection, float]] = {}
        self._cut: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="engine-state-deadlines", daemon=True)
        self._thread.start()

    @contextmanager
    def over(self, connection: psycopg.Connection) -> Iterator[None]:
        """Run the block within the deadline; beyond it, whatever waits for the connection gets OperationalError."""
        key = id(connection)
        with self._guard:
            self._busy[key] = connection, time.monotonic() + self._seconds
        try:
            yield
        finally:
            with self._guard:  # never while it is being cut: its descriptor may be another one's afterwards
                del self._busy[key]
                self._cut.discard(key)

    def passed(self, connection: psycopg.Connection) -> bool:
        """Whether this connection, which is in use, was cut."""
        return id(connection) in self._cut

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            now = time.monotonic()
            with self._guard:
                for key, (connection, due) in self._busy.items():
                    if now > due and key not in self._cut:
                        self._cut.add(key)
                        _shut(connection)


def _shut(connection: psycopg.Connection) -> None:
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as open_socket:
        open_socket.shutdown(socket.SHUT_RDWR)
