"""A scripted OpenAI-compatible server on real TLS loopback, and an engine whose policy admits it."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from admission_adapters.llm import RemoteModel
from admission_adapters.llm_provider import Provider
from engine.completing import Completion, Prompt
from engine.engine import AsyncEngine, Engine
from engine.settings import Settings
from tests.sources.https import Authority, Script, Server, response, serving

HOST = "models.example"
KEY = "Zq7-planted-key-of-the-provider-0123456789"
"""In no form of any vendor, so that no pattern would redact it."""

MODEL = "gpt-4.1-mini"
SAID = "Hello from the model"
MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
HELLO: list[dict[str, str]] = [{"role": "user", "content": "canary-prompt: say hello"}]

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


def completion(text: str | None = SAID, *, model: str = MODEL, **changes: Any) -> bytes:
    """A plain completion as a whole HTTP response."""
    return response(json.dumps(document(text, model=model, **changes)).encode())


def document(text: str | None = SAID, *, model: str = MODEL, **changes: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice],
        "usage": {"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 42},
    } | changes  # fmt: skip


def chunks(*texts: str, model: str = MODEL, usage: bool = True) -> list[str]:
    """The events of a streamed completion, with its end mark."""
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": text} for text in texts)]
    found = [{**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    found.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage:
        counted = {"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 42}
        found.append({**common, "choices": [], "usage": counted})
    return [*(json.dumps(one) for one in found), "[DONE]"]


def streamed(*events: str, torn: bool = False) -> bytes:
    """A stream of these events in chunks; `torn` without the last, empty chunk."""
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [f"data: {event}\n\n".encode() for event in events]
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return head.encode() + body + (b"" if torn else b"0\r\n\r\n")


def failed(status: str, *more: str, body: bytes = b'{"error": {"message": "no"}}') -> bytes:
    return response(body, status=status, more=more)


@dataclass(slots=True)
class ModelServer:
    """The server, what it says next, the last thing again and again, and the whole requests it read."""

    server: Server
    authority: Authority
    says: list[bytes | Script] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return self.server.url("/v1", HOST)

    def answers(self, *says: bytes | Script) -> None:
        """Say these things one after the other from now on; what was read is forgotten."""
        self.says, self.requests = list(says), []
        self.server.answers(self._script)

    def _script(self, stream: ssl.SSLSocket, ended: threading.Event) -> None:
        head = self.server.requests[-1]
        self.requests.append(_whole(stream, head))
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if callable(said):
            said(stream, ended)
        else:
            stream.sendall(said)

    def bodies(self) -> list[Any]:
        return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.requests]


def _whole(stream: ssl.SSLSocket, begun: bytes) -> bytes:
    length = _LENGTH.search(begun)
    wanted = begun.index(b"\r\n\r\n") + 4 + (0 if length is None else int(length[1]))
    while len(begun) < wanted and (data := stream.recv(65_536)):
        begun += data
    return begun


@contextmanager
def model_serving(folder: Path) -> Iterator[ModelServer]:
    authority = Authority(folder)
    with serving(authority.context(HOST)) as server:
        found = ModelServer(server, authority)
        found.answers(completion())
        yield found


def values(port: int, **more: str) -> tuple[str, ...]:
    """The values under which the server is admitted: its port, and the addresses of this machine as public ones."""
    row = f"{{host: {HOST}, port: {port}, models: [{MODEL}]}}"
    own = {
        "llm.providers.local": row,
        "llm.request.seconds": "30",
        "addresses.refused": '[{cidr: 10.0.0.0/8, reason: a test, source: a test, date: "2026-01-01"}]',
    }
    return tuple(f"{name}={value}" for name, value in (own | more).items())


def variables(server: ModelServer, **changes: str) -> dict[str, str]:
    return {
        "AGENT_DATA_LLM_BASE_URL": server.base_url,
        "AGENT_DATA_API_KEY": KEY,
        "AGENT_DATA_LLM_MODEL": MODEL,
    } | changes


@dataclass(slots=True)
class World:
    """An engine whose policy admits the server, the waits it made, and the addresses that its host has."""

    server: ModelServer
    engine: Engine
    waits: list[float] = field(default_factory=list)
    addresses: tuple[str, ...] = ("127.0.0.1",)

    def ask(self, messages: list[dict[str, str]] | None = None, **how: Any) -> Completion:
        return self.engine.complete(Prompt(HELLO if messages is None else messages, **how))

    def configured(self, environment: Mapping[str, str]) -> None:
        use(self.engine, environment, self.server.authority.path, self.waits.append)


def use(
    engine: Engine | AsyncEngine, environment: Mapping[str, str], ca_file: Path, pause: Callable[[float], None]
) -> None:
    """Give the engine the variables, and a clock that does not wait."""
    engine.executors._remote_model = RemoteModel(Provider.read(environment), ca_file, pause)


def resolving(engine: Engine | AsyncEngine, addresses: Callable[[str], tuple[str, ...]]) -> None:
    assert engine.services is not None
    context = replace(engine.services.gather_context, addresses=addresses)
    engine.services = replace(engine.services, gather_context=context)


@contextmanager
def world_of(server: ModelServer, settings: Settings, **more: str) -> Iterator[World]:
    """An engine whose clock stands still: no minute ends whose requests are counted."""
    own, changed = replace(settings, ca_file=server.authority.path), values(server.server.port, **more)
    with Engine(own, values=changed, now=lambda: MOMENT) as engine:
        assert engine.policy is not None, engine.opa
        world = World(server, engine)
        resolving(engine, lambda _: world.addresses)
        world.configured(variables(server))
        yield world
