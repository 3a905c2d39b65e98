"""A real TLS server on loopback with a throwaway authority, which answers exactly the bytes that a test scripts."""

from __future__ import annotations

import datetime as dt
import re
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.conftest import ROOT

HOST = "data.example.org"
BODY = b'[{"id": 1, "name": "Ada", "email": "ada@example.org"}]'

Script = Callable[[ssl.SSLSocket, threading.Event], None]
"""Answers one request that was read; the event is set when the test is over."""


_RESOLVES = f"""
import socket
real = socket.getaddrinfo
def found(host, *arguments, **more):
    return real("127.0.0.1" if host == "{HOST}" else host, *arguments, **more)
socket.getaddrinfo = found
"""


def admitting(folder: Path, server: Server) -> Path:
    """A new policy folder in `folder` that admits this server."""
    policy = folder / "policy"
    shutil.copytree(ROOT / "policy", policy)
    networks = policy / "networks.yaml"
    text = networks.read_text(encoding="utf-8")
    networks.write_text(text.replace("ports: [443]", f"ports: [443, {server.port}]"), encoding="utf-8")
    addresses = policy / "addresses.yaml"
    rows = addresses.read_text(encoding="utf-8").splitlines(keepends=True)
    addresses.write_text("".join(row for row in rows if "127.0.0.0/8" not in row), encoding="utf-8")
    (folder / "sitecustomize.py").write_text(_RESOLVES, encoding="utf-8")
    return policy


def complete(folder: Path, lines: str) -> None:
    """Write these lines into a fetched `bundle.yaml` in the place of its own, also of those that are comments."""
    document = (folder / "bundle.yaml").read_text(encoding="utf-8")
    digest = next(line.split()[1] for line in document.splitlines() if line.strip().startswith("sha256:"))
    for line in lines.replace("HASH", digest).splitlines():
        key = re.escape(line.partition(":")[0])
        found = re.search(rf"(?m)^( *)(?:# )?{key}:.*$", document)
        assert found is not None, line
        document = document[: found.start()] + found[1] + line + document[found.end() :]
    (folder / "bundle.yaml").write_text(document, encoding="utf-8")


def resolving(policy: Path) -> dict[str, str]:
    """The environment of a process in which the name of the server leads to loopback."""
    return {"PYTHONPATH": f"{policy.parent}:{ROOT}:{ROOT}/adapters"}


class Authority:
    """A certificate authority of one test run; its certificate is in the file `path`."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._folder = folder
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        made = _builder(self._name, self._name, self._key, 1).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        made = made.add_extension(usage, critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.path = folder / f"{name.replace(' ', '-')}.pem"
        self.path.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def context(self, host: str = HOST, days: int = 1) -> ssl.SSLContext:
        """A server's TLS context for this name, valid for so many days from yesterday; 0 is over."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate(host, days))
        return context

    def certificate(self, host: str = HOST, days: int = 1) -> Path:
        """A file with a private key and its certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        made = _builder(subject, self._name, key, days)
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = made.add_extension(issuer, critical=False).sign(self._key, hashes.SHA256())
        path = self._folder / f"{host}-{days}-{id(key)}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=2))
        .not_valid_after(now - dt.timedelta(days=1) if days == 0 else now + dt.timedelta(days=days))
    )


@dataclass(slots=True)
class Server:
    """A listening server: how it answers, the requests it read, and how many connections it accepted."""

    port: int
    context: ssl.SSLContext
    script: Script
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/contacts.json", host: str = HOST) -> str:
        return f"https://{host}:{self.port}{path}"

    def answers(self, script: Script | bytes) -> None:
        """Answer like this from now on; what was counted is forgotten, and scripts in progress end."""
        self.ended.set()
        self.ended = threading.Event()
        self.script = answers(script) if isinstance(script, bytes) else script
        self.requests, self.connections = [], 0


@contextmanager
def serving(context: ssl.SSLContext) -> Iterator[Server]:
    """A server that answers each connection on a thread of its own."""
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()
    server = Server(listener.getsockname()[1], context, answers(response()))

    def serve() -> None:
        while True:
            with suppress(OSError):
                raw, _ = listener.accept()
                if over.is_set():
                    raw.close()
                    return
                server.connections += 1
                threading.Thread(target=_exchange, args=(raw, server), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        over.set()
        server.ended.set()
        with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=5):
            pass  # wakes the listener
        thread.join()
        listener.close()


def _exchange(raw: socket.socket, server: Server) -> None:
    script, ended = server.script, server.ended
    with raw, suppress(OSError):
        raw.settimeout(60)
        with server.context.wrap_socket(raw, server_side=True) as stream:
            request = b""
            while b"\r\n\r\n" not in request:
                if not (data := stream.recv(65_536)):
                    return
                request += data
            server.requests.append(request)
            script(stream, ended)


def answers(*pieces: bytes) -> Script:
    """Send these bytes, then close."""

    def script(stream: ssl.SSLSocket, _: threading.Event) -> None:
        for piece in pieces:
            stream.sendall(piece)

    return script


def drips(pieces: Iterable[bytes]) -> Script:
    """Send a piece every twentieth of a second until the test is over, then hold the connection."""

    def script(stream: ssl.SSLSocket, ended: threading.Event) -> None:
        for piece in pieces:
            if ended.wait(0.05):
                return
            stream.sendall(piece)
        ended.wait()

    return script


def endless(head: bytes, piece: bytes) -> Script:
    """Send a head, then the same piece until the reader has gone."""

    def script(stream: ssl.SSLSocket, ended: threading.Event) -> None:
        stream.sendall(head)
        while not ended.is_set():
            stream.sendall(piece)

    return script


def response(
    body: bytes = BODY,
    *,
    status: str = "200 OK",
    type_: str | None = "application/json",
    length: int | None = None,
    more: tuple[str, ...] = (),
) -> bytes:
    """A whole HTTP response, with the length of its body unless another one is stated."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *more]
    lines += [] if type_ is None else [f"Content-Type: {type_}"]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("ascii") + body
