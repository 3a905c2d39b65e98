"""The executor of one tunnel: connects to an address of its permit and passes bytes both ways, within its caps.

Nothing is sent there before the client has named, in its TLS hello, exactly the host that was decided on. Where the
server asks for a second hello, that names the same host.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, runtime_checkable

from admission_adapters.connecting import connected
from admission_adapters.digests import digest
from admission_adapters.grants import granted, unenforceable
from admission_adapters.tunnels.head import Head
from admission_adapters.tunnels.hello import ALERT, HelloError, read_answer, read_hello, read_second_hello
from engine.model import Job, Permit, Result

POINT = "network"

HELLO_SECONDS = 10.0
"""For a client to begin with TLS once its tunnel is open, and for its second hello."""

_PIECE = 1 << 16
_OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"
_UNREACHABLE = b"HTTP/1.1 502 host_unreachable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@runtime_checkable
class TunnelGrant(Protocol):
    """What is read of the limits of point `network`."""

    purpose: str
    url_digest: str  # `sha256:` and hex, of `https://host/` or `https://host:port/`
    host: str
    port: int
    addresses: Sequence[str]  # any one of them, and no other
    seconds: int  # from the connection to the last byte


class Allowance:
    """The bytes that all tunnels of one run may still move in one direction; threads share it."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = threading.Lock()

    def take(self, count: int) -> bool:
        """Take so many; False if there are fewer."""
        with self._lock:
            if count > self._left:
                return False
            self._left -= count
            return True


class Tunnel:
    """One request to the proxy, and the tunnel that may come of it. `began`: there was a permit for it."""

    def __init__(self, client: socket.socket, head: Head, sent: Allowance, received: Allowance) -> None:
        self._client, self._head = client, head
        self._allowances = (sent, received)
        self._counts = [0, 0]
        self._came = b""  # what the client sent after its hellos, before the server had them
        self._lock = threading.Lock()
        self._open = [client]
        self._over = False
        self.began = False

    def __call__(self, permit: Permit, job: Job) -> Result:
        """Connect and pass bytes until one side ends. Raises WorkError without a permit for exactly this tunnel."""
        grant = granted(permit, POINT, job.input_digest, TunnelGrant)
        named = grant.url_digest == digest((self._head.url or "").encode("utf-8"))
        if grant.purpose != "tunnel" or not named or not self._head.tunnel:
            raise unenforceable("the permit is not for this tunnel", "request a decision on exactly this host and port")
        self.began = True
        deadline = time.monotonic() + grant.seconds
        job.stop.then(self.cut)
        try:
            ended = self._run(grant, deadline)
        finally:
            job.stop.forget(self.cut)
        sent, received = self._counts
        facts: dict[str, Any] = {"ended": ended, "sent_bytes": sent, "received_bytes": received}
        return Result("tunnelled" if ended == "closed" else "refused" if not sent else "ended_early", facts)

    def cut(self) -> None:
        """End it now; idempotent, and callable from any thread."""
        with self._lock:
            self._over = True
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _run(self, grant: TunnelGrant, deadline: float) -> str:
        """Why it ended, as a word."""
        try:
            server = connected(grant.addresses, grant.port, partial(_left, deadline), self._opened)
        except OSError:
            with suppress(OSError):
                self._client.sendall(_UNREACHABLE)
            return "cut" if self._over else "unreachable"
        with server:
            try:
                self._client.sendall(_OPEN)
                ended = self._greet(server, grant.host, deadline) or self._pass(server, deadline)
            except HelloError as error:
                with suppress(OSError):
                    self._client.sendall(ALERT)
                ended = str(error)
            except OSError:
                ended = "deadline" if time.monotonic() >= deadline else "closed"
            finally:
                with self._lock:
                    self._open.remove(server)
        return "cut" if self._over else ended

    def _opened(self, server: socket.socket) -> None:
        with self._lock:
            self._open[1:] = [server]
            if self._over:
                raise ConnectionAbortedError

    def _greet(self, server: socket.socket, host: str, deadline: float) -> str | None:
        """Pass the hellos on, each once it is known to be for this host; the word of the limit that ended it, if any.

        Raises HelloError and OSError.
        """
        hello, came = read_hello(self._client, self._head.rest, host, _soon(deadline))
        if not self._taken(0, hello):
            return "sent_limit"
        server.sendall(hello)
        answered, again = read_answer(server, deadline)
        if not self._taken(1, answered):
            return "received_limit"
        self._client.sendall(answered)
        if again:
            came = read_second_hello(self._client, came, host, _soon(deadline))
        self._came = came
        return None

    def _pass(self, server: socket.socket, deadline: float) -> str:
        """Pass bytes both ways until both sides have ended or something is used up."""
        for one in (self._client, server):
            one.setblocking(False)  # noqa: FBT003  (it accepts no keyword)
        ways = (_Way(0, self._client, server), _Way(1, server, self._client))
        if not self._taken(0, self._came):
            return "sent_limit"
        ways[0].waiting += self._came
        while not all(way.done for way in ways):
            left = deadline - time.monotonic()
            if left <= 0:
                return "deadline"
            for way in _ready(ways, left):
                if way.waiting:
                    way.write()
                elif not way.ended:
                    data = way.read()
                    if not self._taken(way.number, data):
                        return ("sent_limit", "received_limit")[way.number]
                    way.waiting += data
        return "closed"

    def _taken(self, number: int, data: bytes) -> bool:
        self._counts[number] += len(data)
        return self._allowances[number].take(len(data))


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())


def _soon(deadline: float) -> float:
    return min(deadline, time.monotonic() + HELLO_SECONDS)


class _Way:
    """One direction: what was read and waits to be written, at most one piece; `ended`: nothing more comes."""

    def __init__(self, number: int, source: socket.socket, target: socket.socket) -> None:
        self.number, self.source, self.target = number, source, target
        self.waiting = bytearray()
        self.ended = self.done = False

    def read(self) -> bytes:
        """The next piece. Raises OSError."""
        with suppress(BlockingIOError):
            data = self.source.recv(_PIECE)
            self.ended = not data
            self._close()
            return data
        return b""

    def write(self) -> None:
        """As much as there is room for. Raises OSError."""
        with suppress(BlockingIOError):
            del self.waiting[: self.target.send(self.waiting)]
        self._close()

    def _close(self) -> None:
        """Tell the other side that nothing more comes."""
        if self.ended and not self.waiting and not self.done:
            self.done = True
            with suppress(OSError):
                self.target.shutdown(socket.SHUT_WR)


def _ready(ways: Sequence[_Way], seconds: float) -> list[_Way]:
    """The directions that can go on; waits for one."""
    poll = select.poll()
    events: dict[int, int] = {}
    for way in ways:
        if way.waiting:
            events[way.target.fileno()] = events.get(way.target.fileno(), 0) | select.POLLOUT
        elif not way.ended:
            events[way.source.fileno()] = events.get(way.source.fileno(), 0) | select.POLLIN
    for descriptor, event in events.items():
        poll.register(descriptor, event)
    found = dict(poll.poll(seconds * 1000))
    bad = select.POLLERR | select.POLLHUP | select.POLLNVAL
    return [
        way
        for way in ways
        if (way.waiting and found.get(way.target.fileno(), 0) & (select.POLLOUT | bad))
        or (not way.waiting and not way.ended and found.get(way.source.fileno(), 0) & (select.POLLIN | bad))
    ]
