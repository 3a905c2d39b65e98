"""Both clients against peers that misbehave: every fault is a DecideError with its code, in time."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import FrameType
from typing import Any, NoReturn

import pytest

from engine.errors import DecideError
from engine.opa.async_client import AsyncClient
from engine.opa.client import Client
from engine.opa.reply import Reply
from engine.settings import OpaLimits
from tests.expect import refused
from tests.opa.peers import FAULTS, HEAD, LARGE, ONE, Held, body, says, serving, silent
from tests.processes import in_child, until

Ask = Callable[[str, OpaLimits, dict[str, Any]], Reply]


def ask_sync(path: str, limits: OpaLimits, document: dict[str, Any]) -> Reply:
    with closing(Client(path, limits)) as client:
        return client.ask("decision", document)


def ask_async(path: str, limits: OpaLimits, document: dict[str, Any]) -> Reply:
    async def run() -> Reply:
        client = AsyncClient(path, limits)
        try:
            return await client.ask("decision", document)
        finally:
            client.close()
            await asyncio.sleep(0)

    return asyncio.run(run())


both = pytest.mark.parametrize("ask", [ask_sync, ask_async], ids=["sync", "async"])


@both
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_a_refusal_in_time(name: str, ask: Ask) -> None:
    talk, code = FAULTS[name]
    limits = OpaLimits(answer_seconds=1 if name in {"garbage", "silent", "drips"} else 60, answer_bytes=100_000)
    with serving(talk) as peer:
        started = time.monotonic()
        with refused(DecideError, code):
            ask(peer.path, limits, {})
        assert time.monotonic() - started < 30  # seconds; a drip of 1,000 bytes would take 50
        until(lambda: peer.requests)
    assert len(peer.requests) == 1  # never sent twice


@pytest.mark.parametrize("name", FAULTS)
def test_after_a_fault_the_next_answer_is_the_right_one(name: str) -> None:
    limits = OpaLimits(answer_seconds=0.2, answer_bytes=100_000)

    async def main() -> None:
        client = AsyncClient(peer.path, limits)
        with pytest.raises(DecideError):
            await client.ask("decision", {})
        peer.talk = ONE
        assert (await client.ask("decision", {}, 20)).result == 1
        client.close()
        await asyncio.sleep(0)

    with serving(FAULTS[name][0]) as peer, closing(Client(peer.path, limits, connections=1)) as one:
        with pytest.raises(DecideError):
            one.ask("decision", {})
        peer.talk = ONE
        assert one.ask("decision", {}, 20).result == 1
    with serving(FAULTS[name][0]) as peer:
        asyncio.run(main())


@both
def test_a_valid_answer_is_read_in_any_framing(ask: Ask) -> None:
    chunked = HEAD + b'Transfer-Encoding: chunked\r\n\r\n4\r\n{"re\r\n9\r\nsult": 2}\r\n0\r\n\r\n'
    closing = HEAD + b'Connection: close\r\nContent-Length: 13\r\n\r\n{"result": 3}'

    def torn(connection: socket.socket) -> None:
        for byte in body(b'{"result": 4}'):
            connection.sendall(bytes([byte]))

    for talk, result in [(ONE, 1), (says(chunked), 2), (says(closing), 3), (torn, 4), (says(LARGE), "x" * 300_000)]:
        with serving(talk) as peer:
            reply = ask(peer.path, OpaLimits(answer_seconds=20), {"point": "é"})
            assert (reply.defined, reply.result) == (True, result)
            assert [json.loads(request) for request in peer.requests] == [{"input": {"point": "é"}}]


@both
def test_a_proxy_in_the_environment_changes_nothing(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with serving(ONE) as peer:
        assert ask(peer.path, OpaLimits(answer_seconds=20), {}).result == 1


@both
def test_a_missing_socket_is_refused_at_once(ask: Ask) -> None:
    started = time.monotonic()
    with refused(DecideError, "policy_unavailable"):
        ask("/nonexistent/socket", OpaLimits(answer_seconds=60), {})
    assert time.monotonic() - started < 30  # at once, not at the deadline


@both
def test_a_deadline_that_is_over_leaves_no_socket_open(ask: Ask) -> None:
    """An unclosed socket would warn when it is collected, and fail the test."""
    with serving(ONE) as peer:
        for _ in range(3):
            with refused(DecideError, "policy_unavailable"):
                ask(peer.path, OpaLimits(answer_seconds=1e-9), {})
        gc.collect()


@both
def test_a_document_that_is_not_json_is_never_sent(ask: Ask) -> None:
    with serving(ONE) as peer:
        for odd in (float("nan"), object()):
            with refused(DecideError, "engine.internal"):
                ask(peer.path, OpaLimits(answer_seconds=20), {"x": odd})
        assert not peer.requests


def test_four_threads_ask_at_once_and_others_wait() -> None:
    full = threading.Event()
    at_once = threading.Barrier(4, action=full.set)

    def talk(connection: socket.socket) -> None:
        at_once.wait(20)
        ONE(connection)

    with serving(talk) as peer, closing(Client(peer.path, OpaLimits(answer_seconds=20))) as client:
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: client.ask("decision", {}), range(8)))
        assert full.is_set()
        assert [reply.result for reply in replies] == [1] * 8
        assert (peer.most, peer.connections) == (4, 4)


def test_waiting_for_a_connection_is_part_of_the_deadline() -> None:
    talk, limits = Held(), OpaLimits(answer_seconds=20)
    with serving(talk) as peer, ThreadPoolExecutor(1) as pool, closing(Client(peer.path, limits, 1)) as client:
        first = pool.submit(client.ask, "decision", {})
        while not peer.requests:
            time.sleep(0.001)
        begun = time.monotonic()
        with refused(DecideError, "policy_unavailable"):
            client.ask("decision", {}, 0.05)
        assert time.monotonic() - begun < 10  # not when the first was answered
        talk.answer.set()
        assert first.result(20).result == 1
        assert len(peer.requests) == 1  # the one that waited was never sent
        assert client.ask("decision", {}).result == 1


class Interrupted(Exception):  # noqa: N818 - it is no error
    """What the handler of a signal raises in the middle of anything."""


@pytest.mark.full
def test_an_interrupt_in_the_middle_of_an_answer_hangs_up_and_mixes_nothing_up() -> None:
    """The first answer comes late and in halves; the call after the interrupt must not read the second half."""
    interrupted = threading.Event()

    def talk(connection: socket.socket) -> None:
        if interrupted.is_set():
            connection.sendall(body(b'{"result": "second"}'))
            return
        whole = body(b'{"result": "first!"}')
        connection.sendall(whole[:-8])
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        interrupted.wait(20)
        connection.sendall(whole[-8:])

    def handler(_number: int, _frame: FrameType | None) -> NoReturn:
        interrupted.set()
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        limits = OpaLimits(answer_seconds=20)
        with serving(talk) as peer, closing(Client(peer.path, limits, connections=1)) as client:
            with pytest.raises(Interrupted):
                client.ask("decision", {"n": 1})
            assert peer.hung_up.wait(20)
            assert client.ask("decision", {"n": 2}).result == "second"
            assert peer.connections == 2
        gc.collect()  # nothing was left open
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupt_between_head_and_body_hangs_up_at_once() -> None:
    """Not only when the answer that was begun is collected: OPA would go on working."""

    def interrupt(*_: object, **__: object) -> NoReturn:
        raise Interrupted

    def talk(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"Content-Length: 99\r\n\r\n{")
        silent(connection)

    limits = OpaLimits(answer_seconds=20)
    with serving(ONE) as peer, closing(Client(peer.path, limits, connections=1)) as client:
        assert client.ask("decision", {}).result == 1
        client._idle[0]._session.hooks["response"].insert(0, interrupt)
        peer.talk = talk
        with pytest.raises(Interrupted) as caught:  # and the frames that it came through are kept
            client.ask("decision", {})
        assert peer.hung_up.wait(10)
        peer.talk = ONE
        assert client.ask("decision", {}).result == 1
        assert caught.tb.tb_next is not None


def test_a_forked_process_may_not_use_the_client() -> None:
    with serving(ONE) as peer, closing(Client(peer.path, OpaLimits(answer_seconds=20))) as client:
        assert client.ask("decision", {}).result == 1  # the control
        assert in_fork(lambda: client.ask("decision", {}))
        assert client.ask("decision", {}).result == 1


def in_fork(call: Callable[[], object]) -> bool:
    """Whether the call is refused in a forked process."""

    def denied() -> bool:
        try:
            call()
        except DecideError as error:
            return error.code == "policy_unavailable"
        return False

    return in_child(denied)
