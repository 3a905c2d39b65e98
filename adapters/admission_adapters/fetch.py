"""The executor of a fetch: one request to exactly the decided address, at one decided IP address, within the caps.

The name is never resolved again: the connection goes to an address of the permit, and TLS checks the name. No
redirect is followed, no proxy, CA or key log of the environment is used, no body is unpacked. How a transfer ended
is reported as facts; which word that is comes from the policy (point `network_response`).

One total deadline bounds every call on the socket, and a stop closes it. httpcore is imported here only.
"""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import httpcore

from admission_adapters.connecting import connected
from admission_adapters.digests import digest
from admission_adapters.grants import granted, unenforceable
from admission_adapters.trust import client_tls
from engine.errors import WorkError
from engine.model import Permit, Result, StopSignal

POINT = "network"
_MATERIAL = "material"

_HEADS_BYTES = 128 << 10
"""Bytes at the beginning of an answer that are kept to find the end of its head; h11 refuses heads near 100 KiB."""

_HEAD_END = re.compile(rb"\n\r?\n")
_INTERIM = re.compile(rb"HTTP/1\.[01] 1[0-9][0-9]")
_TYPE = re.compile(r"([a-z0-9]{1,40}/[a-z0-9][a-z0-9.+-]{0,126})[ \t]*(?:;[ \t]*(.*))?", re.DOTALL)
_CHARSET = re.compile(r"charset[ \t]*=[ \t]*\"?([a-z0-9-]{1,40})\"?[ \t]*;?")
_CODING = re.compile(r"[a-z0-9, -]{1,40}")
_LENGTH = re.compile(r"[0-9]{1,20}")  # as many digits as h11 takes
_MOST_DECLARED = 1 << 62
_PLAIN = "identity"
_HTTPS_PORT = 443
_PIECE_BYTES = 16 << 10
"""A body is sent in pieces, so that the deadline is looked at between them."""


@runtime_checkable
class FetchGrant(Protocol):
    """What is read of the limits of point `network`."""

    url_digest: str  # `sha256:` and hex, of the whole address
    host: str
    port: int
    addresses: Sequence[str]  # any one of them, and no other
    status: int  # the body of any other answer is not read
    max_bytes: int  # of the body
    seconds: int  # from the connection to the last byte


@runtime_checkable
class MaterialGrant(FetchGrant, Protocol):
    """The limits of a fetch, and not those of a tunnel."""

    purpose: str

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """The same with other values."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a request sends to its address: the method, headers of its own, and a body if it has one."""

    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=lambda: {"accept": "*/*"}, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class Transfer:
    """What was seen of one transfer: facts as point `network_response` asks for them, and the body.

    `retry_after` is that header of the answer as it came; no fact.
    """

    connected: bool = False
    secured: bool = False
    in_time: bool = True
    well_formed: bool = False
    within_cap: bool = True
    complete: bool = False
    head: dict[str, Any] | None = None
    read: bool = False
    data: bytearray = field(default_factory=bytearray)
    retry_after: str | None = None

    def facts(self) -> dict[str, Any]:
        """The fields of a request for point `network_response`."""
        names = ("connected", "secured", "in_time", "well_formed", "within_cap", "complete")
        found: dict[str, Any] = {"transfer": {name: getattr(self, name) for name in names}}
        if self.head is not None:
            found["head"] = self.head
        if self.read:
            found["body"] = {"bytes": len(self.data), "sha256": hashlib.sha256(self.data).hexdigest()}
        return found


class Fetcher:
    """Fetches under permits; threads may share it."""

    def __init__(self, ca_file: Path | None) -> None:
        """`ca_file` has the trusted authorities (PEM); None for those of certifi."""
        self._ca_file = ca_file
        self._context: ssl.SSLContext | None = None

    def fetch(
        self, permit: Permit, input_digest: str, url: str, stop: StopSignal, most: int | None = None
    ) -> tuple[Result, Transfer]:
        """Fetch the address that the permit is for; blocks until the transfer ended, in whichever way.

        `most` lowers its cap of bytes.
        Raises WorkError: `engine.permit_missing`; `engine.limit_unenforceable` for an address that is not the one
        of the permit, or limits that cannot be held; `engine.transfer_stopped`.
        """
        grant = granted(permit, POINT, input_digest, MaterialGrant)
        if grant.purpose != _MATERIAL:
            raise _other_address()
        if most is not None:
            grant = grant.model_copy(update={"max_bytes": min(most, grant.max_bytes)})
        transfer = self.exchange(grant, url, Sent(), stop)
        facts = {"bytes": len(transfer.data), "complete": transfer.complete}
        return Result("transferred" if transfer.complete else "ended_early", facts), transfer

    def exchange(self, grant: FetchGrant, url: str, sent: Sent, stop: StopSignal) -> Transfer:
        """One request under a grant that the caller took from its permit; blocks until the transfer ended.

        `stop` closes the connection. Raises WorkError `engine.limit_unenforceable` and `engine.transfer_stopped` as
        `fetch` does.
        """
        target = _target(grant, url)
        transfer, deadline = Transfer(), time.monotonic() + grant.seconds
        wire = _Wire(transfer, deadline)
        try:
            with wire.until(stop):
                _transfer(grant, target, sent, self._trusted(), wire)
        except (httpcore.TimeoutException, TimeoutError):
            transfer.in_time = False
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError):
            transfer.in_time = time.monotonic() < deadline
        if stop.is_set():
            raise WorkError("the transfer was stopped", remedy="see `engine stop list`", code="engine.transfer_stopped")
        return transfer

    def _trusted(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = client_tls(self._ca_file)
        return self._context


def _target(grant: FetchGrant, url: str) -> bytes:
    """Path and query of the address that the permit is for. Raises WorkError."""
    port = "" if grant.port == _HTTPS_PORT else f":{grant.port}"
    origin = f"https://{grant.host}{port}"
    named = digest(url.encode("utf-8", "surrogatepass")) == grant.url_digest and url.startswith(f"{origin}/")
    if not named or not url.isascii() or not grant.addresses or grant.max_bytes < 0 or grant.seconds < 0:
        raise _other_address()
    return url.removeprefix(origin).encode("ascii")


def _transfer(grant: FetchGrant, target: bytes, sent: Sent, context: ssl.SSLContext, wire: _Wire) -> None:
    """Connect, send the request, read the answer into the transfer. Raises what httpcore and sockets raise."""
    transfer = wire.transfer
    pool = httpcore.ConnectionPool(
        ssl_context=context,
        max_connections=1,
        max_keepalive_connections=0,
        http2=False,
        retries=0,
        network_backend=_Pinned(grant, wire),
    )
    headers: dict[bytes | str, bytes | str] = {
        "host": grant.host if grant.port == _HTTPS_PORT else f"{grant.host}:{grant.port}",
        "accept-encoding": _PLAIN,
        "connection": "close",
        "user-agent": "admission-engine",
    }
    headers.update(sent.headers)
    if sent.body:
        headers["content-length"] = str(len(sent.body))
    url = httpcore.URL(scheme="https", host=grant.host, port=grant.port, target=target)
    pieces = (sent.body[at : at + _PIECE_BYTES] for at in range(0, len(sent.body), _PIECE_BYTES))
    with pool, pool.stream(sent.method, url, headers=headers, content=pieces if sent.body else None) as answer:
        transfer.well_formed = True
        transfer.retry_after = _retry_after(answer.headers)
        transfer.head = head = _head(answer.status, answer.headers)
        declared = head.get("declared_bytes")
        transfer.within_cap = declared is None or declared <= grant.max_bytes
        if answer.status != grant.status or head["content_encoding"] != _PLAIN or not transfer.within_cap:
            return
        transfer.read = True
        _read(answer.iter_stream(), grant.max_bytes, transfer)
        if head["framing"] == "length" and transfer.complete:
            transfer.within_cap = wire.received == wire.heads() + len(transfer.data) and not wire.has_more()


def _retry_after(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == b"retry-after"), None)


def _read(chunks: Iterable[bytes], most: int, transfer: Transfer) -> None:
    for chunk in chunks:
        room = most - len(transfer.data)
        transfer.data += chunk[:room]
        if len(chunk) > room:
            transfer.within_cap = False
            return
    transfer.complete = True


def _head(status: int, headers: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
    """The facts of the head of an answer, without any other header."""
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        fields.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip().lower())
    lengths, chunked = fields.get("content-length", []), "transfer-encoding" in fields
    framing = "both" if lengths and chunked else "length" if lengths else "chunked" if chunked else "close"
    coding = ",".join(fields.get("content-encoding", [_PLAIN]))
    found: dict[str, Any] = {
        "status": status,
        "charset_stated": False,
        "content_encoding": coding if _CODING.fullmatch(coding) else "other",
        "framing": framing,
    }
    if len(set(lengths)) == 1 and _LENGTH.fullmatch(lengths[0]):
        found["declared_bytes"] = min(int(lengths[0]), _MOST_DECLARED)
    types = fields.get("content-type", [])
    match = _TYPE.fullmatch(types[0]) if len(types) == 1 else None
    if match is not None:
        found["media_type"] = match[1]
        if match[2]:
            charset = _CHARSET.fullmatch(match[2])
            found |= {"charset_stated": True} | ({} if charset is None else {"charset": charset[1].upper()})
    return found


class _Wire:
    """What one connection has left of its deadline, how many bytes came, and what a stop closes."""

    def __init__(self, transfer: Transfer, deadline: float) -> None:
        self.transfer = transfer
        self.received = 0
        self.secured: _Stream | None = None
        self._deadline = deadline
        self._beginning = bytearray()
        self._stop, self._open = StopSignal(), list[socket.socket]()

    @contextmanager
    def until(self, stop: StopSignal) -> Iterator[None]:
        """Cut the connection when it is stopped: calls on its socket return at once, and fail."""
        self._stop = stop
        stop.then(self._cut)
        try:
            yield
        finally:
            stop.forget(self._cut)
            for one in self._open:
                one.close()

    def opened(self, one: socket.socket) -> None:
        """Note a socket, before it connects; a second handle stays valid when TLS takes the first one over."""
        self._open.append(one.dup())
        if self._stop.is_set():
            self._cut()

    def _cut(self) -> None:
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def left(self) -> float:
        """Seconds until the deadline. Raises httpcore.ReadTimeout at its end."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("total deadline")
        return left

    def came(self, data: bytes) -> bytes:
        """Count decrypted bytes."""
        self.received += len(data)
        if len(self._beginning) < _HEADS_BYTES:
            self._beginning += data
        return data

    def has_more(self) -> bool:
        """Whether another byte is here already; waits for none."""
        try:
            return self.secured is not None and self.secured.receive(1, 0.0) != b""
        except OSError:
            return False

    def heads(self) -> int:
        """Bytes of the heads of the answer, those of interim ones among them; -1 if they have no end."""
        position, data = 0, bytes(self._beginning)
        while (end := _HEAD_END.search(data, position)) is not None:
            if _INTERIM.match(data, position) is None:
                return end.end()
            position = end.end()
        return -1


class _Stream(httpcore.NetworkStream):
    """A connected socket under the total deadline."""

    def __init__(self, own: socket.socket, wire: _Wire) -> None:
        self._own, self._wire = own, wire

    def receive(self, most: int, seconds: float) -> bytes:
        """The next bytes; empty at the end. Raises OSError."""
        self._own.settimeout(seconds)
        return self._own.recv(most)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002  (ours counts)
        return self._wire.came(self.receive(max_bytes, self._wire.left()))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        view = memoryview(buffer)
        while view:
            self._own.settimeout(self._wire.left())
            try:
                view = view[self._own.send(view) :]
            except TimeoutError:
                raise
            except OSError as error:  # what was answered before is still read
                raise httpcore.WriteError from error

    def close(self) -> None:
        self._own.close()

    def get_extra_info(self, info: str) -> Any:  # noqa: ARG002  (nothing that a single request needs)
        return None

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        self._own.settimeout(self._wire.left())
        try:
            inner = ssl_context.wrap_socket(self._own, server_hostname=server_hostname)
        except BaseException:
            self._own.close()
            raise
        self._wire.transfer.secured = True
        self._wire.secured = _Stream(inner, self._wire)
        return self._wire.secured


class _Pinned(httpcore.NetworkBackend):
    """Connects to the addresses of one permit, in their order, and to nothing else."""

    def __init__(self, grant: FetchGrant, wire: _Wire) -> None:
        self._grant, self._wire = grant, wire

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        if (host, port) != (self._grant.host, self._grant.port):
            raise httpcore.ConnectError("not the decided destination")
        own = connected(self._grant.addresses, port, self._wire.left, self._wire.opened)
        self._wire.transfer.connected = True
        return _Stream(own, self._wire)

    def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.NetworkStream:
        raise httpcore.ConnectError("refused")


def _other_address() -> WorkError:
    return unenforceable("the permit is not for this address", "request a decision on exactly this address")
