"""The proxy of one sandbox: serves the listener that came out of its network namespace.

Every request is decided on, also one that asks for no tunnel, and refused with the codes of its decision. One that
needs an approval is refused too, with its id: a running command does not wait for a person. The listener
belongs to one sandbox, so what comes in needs no token.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from admission_adapters.interfaces import Answer
from admission_adapters.sandbox.model import LISTENER
from admission_adapters.tunnels.head import read_head
from admission_adapters.tunnels.tunnel import Allowance, Tunnel

CA_FILE = "/work/authorities.pem"
"""Where a program finds the certificate authorities that it may trust."""

_UNAPPROVED = "not_approved"
_REMEDY = (
    "A person has to approve it, and connections do not wait. Once `engine approvals grant {}` was run, the next "
    "connection of this run to this host and port is made: run the command again.\n"
)

_HEAD_SECONDS = 5.0
_END_SECONDS = 10.0
_CLOSING_SECONDS = 1.0
"""For the other side of a tunnel to close too, once the program is dead."""


def environment() -> dict[str, str]:
    """The variables by which curl, git, pip, npm and others find the proxy and the authorities."""
    proxy = f"http://{LISTENER[0]}:{LISTENER[1]}"
    proxies = ("https_proxy", "HTTPS_PROXY", "http_proxy")
    authorities = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE")
    nodes = ("npm_config_cafile", "NODE_EXTRA_CA_CERTS")
    return dict.fromkeys(proxies, proxy) | dict.fromkeys((*authorities, *nodes), CA_FILE)


@dataclass(frozen=True, slots=True)
class Connection:
    """One request to the proxy: where it led, and the outcome, or the codes of its refusal.

    `approval` is the id of the approval that it needs.
    """

    url: str | None
    outcome: str
    codes: Sequence[str]
    approval: str | None = None


class TunnelServer:
    """Serves one listener until the sandbox is dead."""

    def __init__(
        self,
        decide: Callable[[str | None, int, Tunnel], Answer],
        *,
        at_once: int,
        most: int,
        sent_bytes: int,
        received_bytes: int,
    ) -> None:
        """`decide` takes the address, how many requests came before it, and the executor of its tunnel.

        All requests may be so many, so many `at_once`, and move so many bytes together.
        """
        self._decide, self._most = decide, most
        self._slots = threading.Semaphore(at_once)
        self._allowances = Allowance(sent_bytes), Allowance(received_bytes)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._open: dict[int, Callable[[], None]] = {}
        self._over = False
        self._listener: socket.socket | None = None
        self._ended: dict[int, Connection] = {}

    @property
    def connections(self) -> list[Connection]:
        """The requests that have ended, in the order in which they came."""
        return [one for _, one in sorted(self._ended.items())]

    def begin(self, listener: socket.socket) -> None:
        """Serve this listener from now on, and own it."""
        self._listener = listener
        self._begin(self._accept, listener)

    def end(self, *, cancelled: bool) -> None:
        """The sandbox is dead: close the listener and all tunnels, and wait for their last records.

        Unless the run was cancelled, tunnels that its program has closed have a moment to end by themselves.
        """
        with self._lock:
            self._over = True
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
        self._slots.release()
        if not cancelled:
            self._join(_CLOSING_SECONDS)
        with self._lock:
            cuts = list(self._open.values())
        for cut in cuts:
            cut()
        self._join(_END_SECONDS)

    def _join(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _begin(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, name="sandbox-tunnels", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        """Take requests; one more than permitted is asked about, so that its refusal is recorded."""
        with listener:
            for number in range(self._most + 1):
                self._slots.acquire()
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                self._begin(self._serve, client, number)

    def _serve(self, client: socket.socket, number: int) -> None:
        try:
            with client:
                self._request(client, number)
        finally:
            self._slots.release()

    def _request(self, client: socket.socket, number: int) -> None:
        def cut() -> None:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

        if not self._watched(number, cut):
            return
        head = read_head(client, time.monotonic() + _HEAD_SECONDS)
        tunnel = Tunnel(client, head, *self._allowances)
        if not self._watched(number, tunnel.cut):
            return
        try:
            answer = self._decide(head.url, number, tunnel)
        finally:
            with self._lock:
                del self._open[number]
        codes, requested = _codes(answer), answer.decision.approval
        needed = requested.id if requested is not None and requested.state == "requested" else None
        if not tunnel.began:
            with suppress(OSError):
                client.sendall(_refusal(codes, needed))
        refused = "refused" if needed is None else _UNAPPROVED
        ended = refused if answer.result is None else str(answer.result.facts["ended"])
        self._ended[number] = Connection(head.url, ended, codes, needed)

    def _watched(self, number: int, cut: Callable[[], None]) -> bool:
        """Note how to end a request; False if all have ended."""
        with self._lock:
            self._open[number] = cut
            return not self._over


def _codes(answer: Answer) -> list[str]:
    if answer.fault is not None:
        return [answer.fault.code]
    return [one.code for one in answer.decision.findings if one.level.value == answer.decision.outcome.value]


def _refusal(codes: Sequence[str], approval: str | None) -> bytes:
    """The codes and the id are ours: nothing of the request is repeated."""
    words = ", ".join(codes)
    body = f"the connection is refused: {words}\n{_REMEDY.format(approval) if approval else ''}".encode()
    head = (
        f"HTTP/1.1 403 {words}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
