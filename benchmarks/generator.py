"""A load generator that keeps every answer with its times: `python -m benchmarks.generator URL BODY CONNECTIONS`.

wrk reports how many and how fast, but not which answer came when. Each connection asks again as soon as
it is answered. It prints `running` once every connection was answered, stops when its standard input
ends, and then writes one JSON line per answer.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

import httptools
import uvloop

_LONGEST_SECONDS = 120.0
"""It stops after this time, even if its parent died."""
_ANSWER_SECONDS = 20.0
_AGAIN_SECONDS = 0.005


@dataclass(slots=True)
class _Load:
    """What all connections share."""

    host: str
    port: int
    request: bytes
    connections: int
    answers: list[tuple[float, float, int, bytes]] = field(default_factory=list)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    running: asyncio.Event = field(default_factory=asyncio.Event)

    def answered(self) -> None:
        """A connection has its first answer."""
        self.waiting -= 1
        if self.waiting == 0:
            self.running.set()


class _Connection(asyncio.Protocol):
    """One connection: one request at a time; `done` is set when it has ended for good."""

    def __init__(self, load: _Load) -> None:
        self._load = load
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._sent = 0.0
        self._answered = False
        self._timer: asyncio.TimerHandle | None = None
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """A part of an answer."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """An answer is there: keep it, ask again."""
        self._keep(self._parser.get_status_code(), b"".join(self._body))
        if not self._answered:
            self._answered = True
            self._load.answered()
        if self._load.stopping.is_set():
            self._transport.close()
        elif self._parser.should_keep_alive():
            self._send()

    def connection_lost(self, _: Exception | None) -> None:
        if self._sent:
            self._keep(0, b"")
        self.done.set_result(None)

    def _send(self) -> None:
        self._body = []
        self._sent = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(_ANSWER_SECONDS, self._transport.abort)
        self._transport.write(self._load.request)

    def _keep(self, status: int, body: bytes) -> None:
        self._load.answers.append((self._sent, time.monotonic(), status, body))
        self._sent = 0.0
        if self._timer is not None:
            self._timer.cancel()


async def _ask(load: _Load) -> None:
    """Keep one connection busy; a new one when it ends, and a failed answer when there can be none."""
    loop = asyncio.get_running_loop()
    while not load.stopping.is_set():
        began = time.monotonic()
        try:
            _, connection = await loop.create_connection(lambda: _Connection(load), load.host, load.port)
        except OSError:
            load.answers.append((began, time.monotonic(), 0, b""))
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            await connection.done


async def _run(load: _Load) -> None:
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), load.stopping.set)
    loop.call_later(_LONGEST_SECONDS, load.stopping.set)
    loop.call_later(_ANSWER_SECONDS, load.running.set)
    asking = [loop.create_task(_ask(load)) for _ in range(load.connections)]
    await load.running.wait()
    sys.stdout.write("running\n")
    sys.stdout.flush()
    await asyncio.gather(*asking)
    loop.remove_reader(sys.stdin.fileno())


def _timed_answer(sent: float, received: float, status: int, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        document = {}
    decision = document.get("decision", document)
    policy = decision.get("policy") or {}
    return {
        "sent": sent,
        "received": received,
        "status": status,
        "outcome": decision.get("outcome"),
        "rules": policy.get("rules"),
        "values": policy.get("values"),
        "codes": sorted({finding["code"] for finding in decision.get("findings", ())}),
    }


async def _main(url: SplitResult, body: bytes, connections: int) -> None:
    head = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    load = _Load(url.hostname or "", url.port or 80, request, connections, waiting=connections)
    await _run(load)
    for answer in load.answers:
        sys.stdout.write(json.dumps(_timed_answer(*answer)) + "\n")


if __name__ == "__main__":
    uvloop.run(_main(urlsplit(sys.argv[1]), Path(sys.argv[2]).read_bytes(), int(sys.argv[3])))
