"""A TCP proxy between engines and PostgreSQL that loses no byte, but delays them as a partitioned network does."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: the other end gets a reset."""


class _Link:
    """One connection through the proxy; it forwards requests and answers while `requests` and `answers` are set."""

    def __init__(self, client: socket.socket, server: socket.socket, *, flows: bool) -> None:
        self.ends = client, server
        self.requests, self.answers = threading.Event(), threading.Event()
        self.holds = 0
        if flows:
            self.let()
        for source, target, flow in ((client, server, self.requests), (server, client, self.answers)):
            threading.Thread(target=self._pump, args=(source, target, flow), daemon=True).start()

    def let(self) -> None:
        self.requests.set()
        self.answers.set()

    def _pump(self, source: socket.socket, target: socket.socket, flow: threading.Event) -> None:
        with suppress(OSError):
            while True:
                data = source.recv(65536)
                self.holds += 1
                flow.wait()
                if data:
                    with suppress(OSError):
                        target.sendall(data)
                self.holds -= 1
                if not data:
                    break
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        for end in self.ends:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it
            end.close()
        self.let()


class Proxy:
    """Listens on a port of the loopback address, for a server at a socket file or at another address and port."""

    def __init__(self, target: Path | tuple[str, int]) -> None:
        self._target = target
        self._links: list[_Link] = []
        self._flows = True
        self._guard = threading.Lock()
        """So that a connection that is being accepted gets what holds for all from then on."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = self._connected()
                except OSError:
                    client.close()
                    continue
                with self._guard:
                    self._links.append(_Link(client, server, flows=self._flows))

    def _connected(self) -> socket.socket:
        if isinstance(self._target, tuple):
            return socket.create_connection(self._target)
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self._target))
        except OSError:
            server.close()
            raise
        return server

    def stall(self, *, requests: bool = True, answers: bool = True) -> None:
        """Forward nothing, of old and of new connections; of old ones only requests or only answers are held.

        What is sent meanwhile arrives later.
        """
        with self._guard:
            self._flows = False
            for link in self._links:
                if requests:
                    link.requests.clear()
                if answers:
                    link.answers.clear()

    def let_new(self) -> None:
        """Forward for new connections alone: what was delayed comes after what is sent now."""
        self._flows = True

    def heal(self) -> None:
        """Forward everything, also what was delayed."""
        with self._guard:
            self._flows = True
            for link in self._links:
                link.let()

    def delayed(self) -> bool:
        """Whether something that was sent has not arrived yet."""
        return any(link.holds for link in self._links)

    def reset(self) -> None:
        """End every connection with a reset."""
        with self._guard:
            while self._links:
                self._links.pop().reset()

    def close(self) -> None:
        """End everything."""
        self._listener.close()
        self.reset()
