"""The typed client: a decision comes back whatever the server, the network or a liar does, and failures are denies."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from engine.api.client import AsyncClient, Client
from engine.model import Decision, Outcome
from tests.api.serving import ALLOWED, LICENSE, SECONDS, Serving, read_all
from tests.processes import in_child, own_port


def codes(decision: Decision) -> list[str]:
    return [finding.code for finding in decision.findings]


def test_the_client_returns_the_decision_with_its_typed_limits(api: Serving) -> None:
    with Client(f"http://{api.host}:{api.port}", seconds=SECONDS) as client:
        allowed = client.decide("license", ALLOWED, run="run-1", request_id="client-test")
        denied = client.decide("license", LICENSE)
    assert (allowed.outcome, codes(allowed)) == ("allow", [])
    assert allowed.limits is not None
    assert allowed.limits.model_dump() == {"purpose": "train", "export": {"allowed": False}}
    assert (denied.outcome, codes(denied)) == ("deny", ["license_decision_missing"])


def test_the_async_client_decides_over_the_control_socket(api: Serving) -> None:
    async def ask() -> list[Decision]:
        async with AsyncClient(f"unix:{api.state}/run/control.sock", seconds=SECONDS) as client:
            return list(await asyncio.gather(*(client.decide("license", ALLOWED) for _ in range(20))))

    decisions = asyncio.run(ask())
    assert {decision.outcome for decision in decisions} == {Outcome.ALLOW}
    assert len({decision.decision_id for decision in decisions}) == 20


def test_a_refusal_by_the_server_becomes_a_deny(api: Serving) -> None:
    with Client(f"http://{api.host}:{api.port}", seconds=SECONDS) as client:
        assert codes(client.decide("license", {"purpose": "train"})) == ["engine.request_invalid"]
        (finding,) = client.decide("nowhere", {}).findings
        assert (finding.code, finding.remedy) == ("engine.point_unknown", "GET /openapi.json lists them")
        assert client.decide("license", {"purpose": float("nan")}).outcome == "deny"


def test_many_requests_get_a_decision_each(api: Serving) -> None:
    with Client(f"http://{api.host}:{api.port}", seconds=SECONDS) as client:
        allowed, denied, invalid = client.decide_many("license", [ALLOWED, LICENSE, {"purpose": "train"}], run="run-2")
        assert client.decide_many("license", []) == []
        too_many = client.decide_many("license", [ALLOWED] * 1_001)
        nowhere = client.decide_many("nowhere", [{}, {}])
    assert (allowed.outcome, codes(denied), codes(invalid)) == (
        "allow", ["license_decision_missing"], ["engine.request_invalid"],
    )  # fmt: skip
    assert len({allowed.decision_id, denied.decision_id, invalid.decision_id}) == 3
    assert [codes(one) for one in too_many] == [["engine.batch_invalid"]] * 1_001
    assert [codes(one) for one in nowhere] == [["engine.point_unknown"]] * 2


def test_the_async_client_asks_about_many_too(api: Serving) -> None:
    async def ask() -> list[Decision]:
        async with AsyncClient(f"unix:{api.state}/run/control.sock", seconds=SECONDS) as client:
            return await client.decide_many("license", (ALLOWED for _ in range(20)))

    assert [one.outcome for one in asyncio.run(ask())] == [Outcome.ALLOW] * 20


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_unreachable_server_is_a_deny(tmp_path: Path) -> None:
    """The HTTP client leaves a unix socket that could not connect to the garbage collector, which warns."""
    with own_port() as port, Client(f"http://127.0.0.1:{port}") as client:
        assert codes(client.decide("license", ALLOWED)) == ["engine.unreachable"]
        assert [codes(one) for one in client.decide_many("license", [ALLOWED] * 2)] == [["engine.unreachable"]] * 2
    with Client(f"unix:{tmp_path}/nothing.sock") as client:
        assert codes(client.decide("license", ALLOWED)) == ["engine.unreachable"]


def good(**changes: Any) -> dict[str, Any]:
    """What a server would answer to an allowed request, with fields changed."""
    return {
        "decision_id": "d",
        "point": "license",
        "mode": "enforce",
        "outcome": "allow",
        "findings": [],
        "limits": {"purpose": "train", "export": {"allowed": False}},
        "policy": {"rules": f"sha256:{'0' * 64}", "values": f"sha256:{'1' * 64}"},
        "input_digest": f"sha256:{'2' * 64}",
        "approval": None,
    } | changes


def response(body: Any, status: str = "200 OK") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (status.encode(), len(data), data)


DENYING = {"code": "x", "level": "deny", "requirement": "", "subject": None, "remedy": ""}

USED = {"id": "another", "state": "used", "expires_at": "1970-01-01T00:00:01Z"}

LIES: dict[str, bytes] = {
    "nothing": b"",
    "no_http": b"allow\r\n\r\n",
    "half": response(good())[:-20],
    "no_json": response(b"{"),
    "null": response(b"null"),
    "empty": response({}),
    "another_point": response(good(point="source")),
    "a_dry_run": response(good(mode="check")),
    "without_limits": response(good(limits=None)),
    "limits_of_another_shape": response(good(limits={"purpose": "train"})),
    "without_a_policy": response(good(policy=None)),
    "a_policy_without_its_values": response(good(policy={"rules": f"sha256:{'0' * 64}"})),
    "without_an_input": response(good(input_digest=None)),
    "without_an_id": response(good(decision_id="")),
    "a_confirming_finding": response(good(findings=[{**DENYING, "level": "confirm"}])),
    "a_finding_of_the_engine": response(good(findings=[{**DENYING, "level": "warn", "code": "policy_stale"}])),
    "an_approval_that_was_not_sent": response(good(approval=USED)),
    "an_approval_for_nothing": response(good(approval={**USED, "id": "sent"})),
    "an_approval_only_requested": response(
        good(approval={**USED, "id": "sent", "state": "requested"}, findings=[{**DENYING, "level": "confirm"}])
    ),
    "two_outcomes": response(json.dumps(good(outcome="deny"))[:-1].encode() + b',"outcome":"allow"}'),
    "a_shorter_body": response(good()).replace(b"content-length: ", b"content-length: 1"),
    "a_denying_finding": response(good(findings=[DENYING])),
    "an_unknown_field": response(good(more=1)),
    "an_unknown_outcome": response(good(outcome="permit")),
    "an_allow_inside_a_problem": response({"decision": good(), "code": "x"}, "503 Busy"),
    "an_allow_with_another_status": response(good(), "500 Broken"),
    "a_redirect": b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n",
}


@contextmanager
def answering(data: bytes, *, slowly: bool = False) -> Iterator[str]:
    """A server that answers every request with this; slowly, a byte at a time until the client leaves."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    connection.recv(65536)
                    if not slowly:
                        connection.sendall(data)
                        connection.shutdown(socket.SHUT_WR)
                        read_all(connection)
                    for byte in data if slowly else b"":
                        connection.sendall(bytes([byte]))
                        threading.Event().wait(0.05)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_a_valid_answer_is_accepted() -> None:
    with answering(response(good())) as address, Client(address, seconds=SECONDS) as client:
        assert client.decide("license", ALLOWED).outcome == "allow"


def test_an_approved_allow_names_the_approval_that_was_sent() -> None:
    approved = good(approval={**USED, "id": "sent"}, findings=[{**DENYING, "level": "confirm"}])
    with answering(response(approved)) as address, Client(address, seconds=SECONDS) as client:
        assert client.decide("license", ALLOWED, approval="sent").outcome == "allow"
        assert client.decide("license", ALLOWED, approval="other").outcome == "deny"
        assert client.decide("license", ALLOWED).outcome == "deny"


@pytest.mark.parametrize("name", LIES)
def test_an_invalid_answer_is_a_deny(name: str) -> None:
    with answering(LIES[name]) as address, Client(address, seconds=SECONDS) as client:
        assert client.decide("license", ALLOWED, approval="sent").outcome == "deny"
        many = client.decide_many("license", [ALLOWED] * 2, approval="sent")
        assert [one.outcome for one in many] == [Outcome.DENY] * 2

        async def ask() -> Decision:
            async with AsyncClient(address, seconds=SECONDS) as other:
                return await other.decide("license", ALLOWED, approval="sent")

        assert asyncio.run(ask()).outcome == "deny"


def batch(*items: Any, status: str = "200 OK") -> bytes:
    """What a server would answer to a batch of requests."""
    return response({"batch_decision_id": "b", "responses": dict(zip("012", items, strict=False))}, status)


def test_each_item_of_a_batch_is_checked_alone() -> None:
    items = {
        "a valid one": good(),
        "none": None,
        "of another point": good(point="source"),
        "with a field more": good(more=1),
        "of another status": good(http_status_code="500"),
        "with a status that is none": good(http_status_code=["200"]),
        "a failure with an allow": {"code": "x", "message": "", "remedy": "", "decision": good()},
    }
    for name, item in items.items():
        with answering(batch(good(), item)) as address, Client(address, seconds=SECONDS) as client:
            found = [one.outcome for one in client.decide_many("license", [ALLOWED] * 3)]
        assert found == ["allow", "allow" if name == "a valid one" else "deny", "deny"], name


def test_of_a_batch_that_was_not_decided_whole_each_item_needs_its_status() -> None:
    both = batch(good(), good(http_status_code="200"), status="207 Multi-Status")
    with answering(both) as address, Client(address, seconds=SECONDS) as client:
        assert [one.outcome for one in client.decide_many("license", [ALLOWED] * 2)] == ["deny", "allow"]


@pytest.mark.parametrize("responses", [[], [good()], "", None, good()])
def test_an_invalid_batch_is_denied_whole(responses: Any) -> None:
    with answering(response({**good(), "responses": responses})) as address, Client(address, seconds=SECONDS) as client:
        assert [one.outcome for one in client.decide_many("license", [ALLOWED] * 2)] == [Outcome.DENY] * 2


def test_a_drip_of_bytes_does_not_outlast_the_deadline() -> None:
    with answering(response(good()), slowly=True) as address, Client(address, seconds=0.3) as client:
        assert codes(client.decide("license", ALLOWED)) == ["engine.unreachable"]

        async def ask() -> Decision:
            async with AsyncClient(address, seconds=0.3) as other:
                return await other.decide("license", ALLOWED)

        assert codes(asyncio.run(ask())) == ["engine.unreachable"]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_drip_of_header_bytes_does_not_either(kind: type[Client | AsyncClient]) -> None:
    drip = b"HTTP/1.1 200 OK\r\nx: " + b"y" * 50_000  # it would go on for forty minutes
    with answering(drip, slowly=True) as address:
        begun = time.monotonic()
        assert codes(asked(kind(address, seconds=0.5), "license")) == ["engine.unreachable"]
        assert time.monotonic() - begun > 0.4


def asked(client: Client | AsyncClient, point: str, *, closed: bool = False) -> Decision:
    """What a client says, on its own kind of thread; then it is closed, or before."""
    if isinstance(client, Client):
        with client:
            if closed:
                client.close()
            return client.decide(point, ALLOWED)

    async def ask() -> Decision:
        async with client:
            if closed:
                await client.close()
            return await client.decide(point, ALLOWED)

    return asyncio.run(ask())


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_closed_client_and_an_unencodable_point_are_denied(
    kind: type[Client | AsyncClient],
) -> None:
    with answering(response(good())) as address:
        assert codes(asked(kind(address, seconds=SECONDS), "license\x00")) == ["engine.unreachable"]
        assert codes(asked(kind(address, seconds=SECONDS), "license", closed=True)) == ["engine.unreachable"]
        assert asked(kind(address, seconds=SECONDS), "license").outcome == "allow"  # the control


def test_a_forked_process_uses_its_own_connection(api: Serving) -> None:
    with Client(f"http://{api.host}:{api.port}", seconds=SECONDS) as client:
        assert client.decide("license", ALLOWED).outcome == "allow"
        assert in_child(lambda: client.decide("license", ALLOWED).outcome == "allow")
        assert client.decide("license", ALLOWED).outcome == "allow"


def test_a_client_is_not_pickled() -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(TypeError, match="make one in each process"):
        pickle.dumps(client)


def test_a_proxy_set_in_the_environment_is_ignored(api: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with Client(f"http://{api.host}:{api.port}", seconds=SECONDS) as client:
        assert client.decide("license", ALLOWED).outcome == "allow"


def test_an_unknown_argument_is_the_callers_mistake(api: Serving) -> None:
    with Client(f"http://{api.host}:{api.port}", seconds=SECONDS) as client, pytest.raises(TypeError):
        client.decide("license", ALLOWED, aproval="typo")
