"""The official client against the same server: it sends what we send, and reads what we read."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import APIStatusError, OpenAI

from engine.settings import Settings
from tests.llm.server import HELLO, KEY, MODEL, World, chunks, completion, failed, model_serving, streamed, world_of

NAMES = ("host:", "authorization:", "content-type:", "content-length:")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, module_settings: Settings) -> Iterator[World]:
    with model_serving(tmp_path_factory.mktemp("authority")) as server, world_of(server, module_settings) as found:
        yield found


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAI]:
    """It resolves the name itself, so the name leads to loopback."""
    real = socket.getaddrinfo

    def found(_: Any, *arguments: Any, **more: Any) -> Any:
        return real("127.0.0.1", *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    context = ssl.create_default_context(cafile=str(world.server.authority.path))
    with httpx2.Client(verify=context, trust_env=False) as http:
        yield OpenAI(api_key=KEY, base_url=world.server.base_url, http_client=http, max_retries=0)


# covers: A102.1
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_both_clients_send_the_same_request(*, stream: bool, world: World, client: OpenAI) -> None:
    said = streamed(*chunks("Hello ", "from ", "the model")) if stream else completion()
    world.server.answers(said)
    ours = world.ask(max_output_tokens=64, stream=stream)
    asked: dict[str, Any] = {"model": MODEL, "messages": HELLO, "max_tokens": 64}
    if stream:
        parts = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
        text = "".join(choice.delta.content or "" for part in parts for choice in part.choices)
        usage = parts[-1].usage
    else:
        whole = client.chat.completions.create(**asked)
        text, usage = whole.choices[0].message.content, whole.usage
    assert usage is not None
    assert ours.tokens is not None
    assert (ours.text, ours.tokens.prompt, ours.tokens.completion) == (
        text, usage.prompt_tokens, usage.completion_tokens,
    )  # fmt: skip
    mine, theirs = world.server.bodies()
    assert mine == theirs
    heads = [request.partition(b"\r\n\r\n")[0].decode("ascii").split("\r\n") for request in world.server.requests]
    assert heads[0][0] == heads[1][0]
    shared = [{line.lower() for line in head if line.lower().startswith(NAMES)} for head in heads]
    assert shared[0] == shared[1]


def test_both_clients_report_an_error(world: World, client: OpenAI) -> None:
    world.server.answers(failed("400 Bad Request"))
    assert world.ask().error == "request_refused"
    with pytest.raises(APIStatusError) as caught:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x"}])
    assert caught.value.status_code == 400
