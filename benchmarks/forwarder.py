"""The floor of any engine that is written in Python: nothing but the way to OPA and back, or with a record besides.

uvloop and httptools as the engine uses them and its own client for OPA; no checks, no facts, no limits of requests.
Run it with the socket of its OPA in BENCH_OPA_SOCKET and its port in BENCH_PORT. With a file in BENCH_RECORD, each
request has a digest and a chained line that was searched for secrets; an answer waits until the line is written, and
with BENCH_SYNC until it is on disk. With BENCH_ONCE, OPA is asked about equal inputs once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from typing import Any, cast

import httptools
import uvloop

from engine.documents.canonical import canonical, digest
from engine.opa.async_client import AsyncClient
from engine.record.model import utc_now
from engine.secrets.forms import SecretForms
from engine.secrets.patterns import know
from engine.secrets.prefilter import clean
from engine.settings import OpaLimits
from engine.times import timestamp

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


_LINE = b'{"decision_id":"%b","input":%b,"input_digest":"%b","result":%b,"time":"%b"}'


class _Record:
    """Chained lines of one file; those that wait for the disk share one sync."""

    def __init__(self, path: str, *, durable: bool) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._durable = durable
        self._head = b""
        self._lines: list[bytes] = []
        self._written = asyncio.get_running_loop().create_future()
        self._writing: asyncio.Task[None] | None = None

    async def append(self, document: Any, result: bytes) -> None:
        """One line; returns once it is written, and on disk if that is asked for."""
        text = canonical(document)
        ids = secrets.token_hex(16).encode(), digest(text).encode(), timestamp(utc_now()).encode()
        line = _LINE % (ids[0], text, ids[1], result, ids[2])
        if not clean(line):
            raise SystemExit("the workload has secrets")
        self._head = hashlib.sha256(self._head + line).hexdigest().encode()
        self._lines.append(b"%b %b\n" % (self._head, line))
        written = self._written
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())
        await written

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._lines:
            lines, self._lines = self._lines, []
            written, self._written = self._written, loop.create_future()
            await loop.run_in_executor(None, self._store, b"".join(lines))
            written.set_result(None)

    def _store(self, lines: bytes) -> None:
        os.write(self._file, lines)
        if self._durable:
            os.fdatasync(self._file)


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, client: AsyncClient, record: _Record | None, known: dict[bytes, bytes] | None) -> None:
        self._client = client
        self._record = record
        self._known = known
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """A part of the input."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """The input is there."""
        body, self._body = b"".join(self._body), []
        self._answering = self._loop.create_task(self._answer(body))

    async def _answer(self, body: bytes) -> None:
        document = json.loads(body)
        answer = None if self._known is None else self._known.get(canonical(document))
        if answer is None:
            answer = canonical((await self._client.ask("decision", document)).result)
            if self._known is not None:
                self._known[canonical(document)] = answer
        if self._record is not None:
            await self._record.append(document, answer)
        self._transport.write(_HEAD % (len(answer), answer))


async def _serve() -> None:
    client = AsyncClient(os.environ["BENCH_OPA_SOCKET"], OpaLimits())
    know(SecretForms())  # without those of policy/secrets.yaml, which makes the search cheaper here
    path = os.environ.get("BENCH_RECORD")
    record = None if path is None else _Record(path, durable="BENCH_SYNC" in os.environ)
    known: dict[bytes, bytes] | None = {} if "BENCH_ONCE" in os.environ else None
    loop = asyncio.get_running_loop()
    port = int(os.environ["BENCH_PORT"])
    server = await loop.create_server(lambda: _Connection(client, record, known), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
