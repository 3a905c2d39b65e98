"""The client of an event loop: its connections, its queue, and callers that leave."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from engine.errors import DecideError
from engine.opa.async_client import AsyncClient
from engine.settings import OpaLimits
from tests.expect import refused
from tests.opa.peers import ONE, Held, Peer, Talk, body, says, serving, silent
from tests.opa.test_client import in_fork

LIMITS = OpaLimits(answer_seconds=20)
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
Run = Callable[[Coroutine[Any, Any, None]], None]


def against(
    talk: Talk,
    main: Callable[[Peer, AsyncClient], Awaitable[None]],
    run: Run = asyncio.run,
    *,
    connections: int = 4,
    queue: int = 99,
) -> None:
    """Run it with a peer that speaks so and a client of it; a peer that holds its answer goes however it ended."""

    async def whole(peer: Peer) -> None:
        client = AsyncClient(peer.path, LIMITS, connections, queue)
        try:
            await main(peer, client)
        finally:
            client.close()
            await asyncio.sleep(0)
            if isinstance(talk, Held):
                talk.answer.set()

    with serving(talk) as peer:
        run(whole(peer))


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not what():  # noqa: ASYNC110 - a peer in another thread does it
            await asyncio.sleep(0.001)


def denied(outcome: object, code: str) -> bool:
    return isinstance(outcome, DecideError) and outcome.code == code


@LOOPS
def test_one_connection_serves_many_calls(run: Run) -> None:
    async def main(peer: Peer, client: AsyncClient) -> None:
        for number in range(20):
            assert (await client.ask("decision", {"n": number})).result == 1
        assert peer.connections == 1
        assert [json.loads(request)["input"]["n"] for request in peer.requests] == list(range(20))

    against(ONE, main, run)


@LOOPS
def test_four_calls_are_in_flight_and_each_gets_its_own_answer(run: Run) -> None:
    at_once = threading.Barrier(4)

    def talk(connection: socket.socket) -> None:
        at_once.wait(20)
        ONE(connection)

    async def main(peer: Peer, client: AsyncClient) -> None:
        replies = await asyncio.gather(*(client.ask("decision", {"n": number}) for number in range(32)))
        assert [reply.result for reply in replies] == [1] * 32
        assert (peer.most, peer.connections) == (4, 4)

    against(talk, main, run)


def test_calls_are_sent_in_the_order_they_came_and_answers_are_not_mixed_up() -> None:
    """The peer says back what it was asked, so that a mixed-up answer shows."""

    async def main(peer: Peer, client: AsyncClient) -> None:
        peer.talk = lambda connection: connection.sendall(body(b'{"result": %s}' % peer.requests[-1]))
        replies = await asyncio.gather(*(client.ask("decision", {"n": number}) for number in range(50)))
        assert [reply.result["input"]["n"] for reply in replies] == list(range(50))
        assert [json.loads(request)["input"]["n"] for request in peer.requests] == list(range(50))

    against(ONE, main, connections=1)


def test_beyond_the_queue_a_call_is_refused_at_once() -> None:
    async def main(peer: Peer, client: AsyncClient) -> None:
        calls = [asyncio.create_task(client.ask("decision", {})) for _ in range(3)]
        await until(lambda: len(peer.requests) == 1)
        with refused(DecideError, "engine.overloaded"):
            await client.ask("decision", {})
        talk.answer.set()
        assert [reply.result for reply in await asyncio.gather(*calls)] == [1, 1, 1]
        assert (await client.ask("decision", {})).result == 1

    talk = Held()
    against(talk, main, connections=1, queue=2)


def test_waiting_is_part_of_the_deadline_and_leaves_no_trace() -> None:
    async def main(peer: Peer, client: AsyncClient) -> None:
        first = asyncio.create_task(client.ask("decision", {}))
        await until(lambda: len(peer.requests) == 1)
        for _ in range(5):  # each leaves the queue, else the second would find it full
            with refused(DecideError, "policy_unavailable"):
                await client.ask("decision", {}, 0.02)
        talk.answer.set()
        assert (await first).result == 1
        assert len(peer.requests) == 1

    talk = Held()
    against(talk, main, connections=1, queue=1)


@pytest.mark.parametrize("leaves", ["canceled", "late"])
def test_a_caller_that_leaves_hangs_up_and_its_place_is_free_again(leaves: str) -> None:
    async def main(peer: Peer, client: AsyncClient) -> None:
        for _ in range(3):
            peer.hung_up.clear()
            seconds = 0.2 if leaves == "late" else None
            left = asyncio.create_task(client.ask("decision", {}, seconds))
            seen = len(peer.requests)
            await until(lambda seen=seen: len(peer.requests) == seen + 1)  # type: ignore[misc]
            peer.talk = ONE
            waits = asyncio.create_task(client.ask("decision", {}))
            if leaves == "canceled":
                left.cancel()
            outcome = (await asyncio.gather(left, return_exceptions=True))[0]
            assert isinstance(outcome, asyncio.CancelledError) or denied(outcome, "policy_unavailable")
            await until(peer.hung_up.is_set)
            assert (await waits).result == 1
            peer.talk = silent

    against(silent, main, connections=1)


@pytest.mark.parametrize(
    "more",
    [body(b'{"result": 2}'), b"H", b"\x00", b"HTTP/1.1 100 Continue\r\n\r\n"],
    ids=["another-answer", "a-byte", "garbage", "continue"],
)
def test_a_peer_that_sends_extra_bytes_is_refused(more: bytes) -> None:
    async def main(peer: Peer, client: AsyncClient) -> None:
        outcomes = await asyncio.gather(client.ask("decision", {}), return_exceptions=True)
        assert denied(outcomes[0], "policy_unavailable")
        peer.talk = ONE
        assert (await client.ask("decision", {})).result == 1
        assert peer.connections == 2

    against(says(body(b'{"result": 1}') + more), main)


def test_an_unexpected_byte_ends_the_connection() -> None:
    async def main(peer: Peer, client: AsyncClient) -> None:
        assert (await client.ask("decision", {})).result == 1
        later.set()
        await until(peer.hung_up.is_set)
        peer.talk = ONE
        assert (await client.ask("decision", {})).result == 1
        assert peer.connections == 2

    later = threading.Event()

    def talk(connection: socket.socket) -> None:
        ONE(connection)
        later.wait(20)
        connection.sendall(body(b'{"result": "stale"}'))

    against(talk, main)


def test_a_connection_closed_between_calls_is_replaced() -> None:
    def once(connection: socket.socket) -> None:
        ONE(connection)
        connection.shutdown(socket.SHUT_RDWR)

    async def main(peer: Peer, client: AsyncClient) -> None:
        for number in range(1, 4):
            assert (await client.ask("decision", {})).result == 1
            await until(lambda: not client._made)  # the loop has read the end of the connection
            assert len(peer.requests) == number

    against(once, main)


def test_closing_fails_what_is_under_way_and_what_waits() -> None:
    async def main(peer: Peer, client: AsyncClient) -> None:
        calls = [asyncio.create_task(client.ask("decision", {})) for _ in range(3)]
        await until(lambda: len(peer.requests) == 1)
        client.close()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(denied(outcome, "policy_unavailable") for outcome in outcomes)
        with pytest.raises(DecideError):
            await client.ask("decision", {})

    against(Held(), main, connections=1)


def test_a_forked_process_may_not_use_the_client() -> None:
    async def main(_: Peer, client: AsyncClient) -> None:
        assert (await client.ask("decision", {})).result == 1
        assert in_fork(lambda: client.ask("decision", {}).send(None))
        assert (await client.ask("decision", {})).result == 1

    against(ONE, main)
