"""Listening sockets: an address, with TLS where configured, and the control socket."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

from engine.documents.files import printable
from engine.errors import GatherError, reason_of

_BACKLOG = 1024


def bind(host: str, port: int) -> socket.socket:
    """A listening socket at one address. Raises GatherError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise _unbound(host, port, "the address is not known") from error
    family, _, _, _, address = found[0]
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
        bound.setblocking(False)  # noqa: FBT003  (its signature)
    except OSError as error:
        bound.close()
        raise _unbound(host, port, reason_of(error)) from error
    return bound


def tls(certificate: Path, key: Path, client_authority: Path | None) -> ssl.SSLContext:
    """TLS 1.2 and later; with `client_authority` every client must show a certificate of it. Raises GatherError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    files = f"`{printable(str(certificate))}` and `{printable(str(key))}`"
    try:
        context.load_cert_chain(certificate, key)
        if client_authority is not None:
            files = f"`{printable(str(client_authority))}`"
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_authority)
    except (OSError, ssl.SSLError) as error:
        reason = error.reason or "the content is not valid" if isinstance(error, ssl.SSLError) else reason_of(error)
        raise GatherError(
            f"TLS cannot be set up with {files}: {reason.replace('_', ' ').lower()}",
            remedy="use PEM files for the certificate, its key and the certificate authority",
        ) from error
    return context


async def serve(
    factory: Callable[[], asyncio.Protocol], bound: socket.socket, context: ssl.SSLContext | None
) -> asyncio.Server:
    """Accept connections of a bound socket."""
    loop = asyncio.get_running_loop()
    if bound.family == socket.AF_UNIX:
        return await loop.create_unix_server(factory, sock=bound)
    timeout = None if context is None else 10.0
    return await loop.create_server(
        factory,
        sock=bound,
        ssl=context,
        backlog=_BACKLOG,
        ssl_handshake_timeout=timeout,
    )


def _unbound(host: str, port: int, reason: str) -> GatherError:
    return GatherError(f"cannot listen on `{host}` port {port}: {reason}", remedy="choose another address or port")
